// The pieces of one layer for one micro-batch, with the memory that Megatron-LM keeps between them
// (build_transformer_layer_callables in megatron/core/models/gpt/fine_grained_callables.py and
// should_free_input in megatron/core/models/common/utils.py, d98e8a6).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "estimator/schedule/piece_order.h"
#include "models/pipeline/graph_piece.h"
#include "models/pipeline/transformer_layer.h"
#include "models/shard/delayed_gradients.h"

namespace models {

/// What a chunk adds to a layer.
struct LayerSurroundings {
  using Body = std::function<at::Tensor(const at::Tensor&)>;

  std::vector<std::string> modules;  ///< around the layer, and its own name
  std::function<void()> before = {};
  Body first = {};       ///< before attention, if there is anything
  Body last = {};        ///< after the layer's sum
  Body prediction = {};  ///< of a layer that predicts a further token
};

class LayerPieces {
 public:
  using Tensors = GraphPiece::Tensors;

  LayerPieces(const ShardContext& context,
              const TransformerLayer& layer,
              LayerSurroundings surroundings);

  bool has(estimator::PieceKind kind) const;
  /// The outputs of the piece before -> those of this one; and their gradients the other way.
  Tensors forward(estimator::PieceKind kind, const Tensors& inputs);
  Tensors backward(estimator::PieceKind kind, Tensors gradients);

 private:
  Tensors attend(const Tensors& inputs);
  Tensors dispatch(const Tensors& inputs);
  Tensors run_mlp(const Tensors& inputs);
  Tensors combine(const Tensors& inputs);
  Tensors predict(const Tensors& inputs);
  Tensors with_last(at::Tensor output) const;
  bool frees_inputs(estimator::PieceKind kind) const;
  GraphPiece& piece(estimator::PieceKind kind) { return pieces_[static_cast<std::size_t>(kind)]; }

  const ShardContext& context_;
  const TransformerLayer& layer_;
  LayerSurroundings surroundings_;
  TransformerLayer::Routed routed_;
  std::vector<GraphPiece> pieces_;  ///< by kind
  std::vector<DelayedGradients::Product> of_mlp_, of_attention_;
};

}  // namespace models
