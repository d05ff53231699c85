// The pieces of a model chunk for one micro-batch (estimator/schedule/piece_order.h). Those that
// send tokens run on a stream of their own beside those of another micro-batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/pipeline/layer_pieces.h"
#include "models/pipeline/model_chunk.h"
#include "models/shard/side_stream.h"

namespace models {

class ChunkPieces {
 public:
  /// `sending` is the stream of those that send tokens.
  ChunkPieces(const ModelChunk& chunk,
              const at::Tensor& input,
              const MicroBatchData& data,
              const SideStream& sending);

  int64_t layers() const { return static_cast<int64_t>(layers_.size()); }
  bool has(const estimator::Piece& piece) const;

  /// Before the first piece of its forward, and of its backward.
  void start_forward();
  void start_backward(const at::Tensor& gradient);
  void run(const estimator::Piece& piece);
  /// The last piece of a layer, also where it has none of this kind, ends what the layer holds
  /// (release_state in megatron/core/models/common/model_chunk_schedule_plan.py).
  void ended(const estimator::Piece& piece);
  /// After the last piece of either: the current stream waits for all of them.
  void end_forward();
  void end_backward();

  /// What the forward made, once; then the one that takes its place as what the backward is of.
  at::Tensor take_output();
  void end_with(const at::Tensor& output);
  /// What the backward made: of the chunk's input, undefined on the first piece of the model.
  at::Tensor take_input_gradient();

 private:
  using Tensors = GraphPiece::Tensors;

  void add_layer(const TransformerLayer& layer, LayerSurroundings surroundings);
  void add_predictions();
  void run_now(const estimator::Piece& piece);
  Tensors begin(const Tensors& input);
  Tensors end(const Tensors& hidden);
  at::Tensor begin_prediction(std::size_t number, const at::Tensor& hidden);
  at::Tensor end_prediction(std::size_t number, const at::Tensor& hidden);
  void forward(const estimator::Piece& piece);
  void backward(const estimator::Piece& piece);

  const ModelChunk& chunk_;
  const SideStream& sending_;
  MicroBatchData data_;
  std::vector<LayerPieces> layers_;
  GraphPiece begin_, end_;
  StreamPoint last_;            ///< where its last piece has ended
  Tensors values_, gradients_;  ///< of the piece before
  Tensors predicted_;           ///< hidden states of all predictions so far
  at::Tensor tokens_;           ///< of the next prediction
};

}  // namespace models
