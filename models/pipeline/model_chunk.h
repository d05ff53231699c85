// A piece of the model: one model chunk of a stage, or the whole stage if stages are not
// interleaved. The first piece has the embedding; the last one has the final norm, the head and the
// loss. If more tokens are predicted, the last one also has the layers for it and a copy of the
// embedding, and the final norm is where the last layer before them is.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <iterator>
#include <memory>
#include <vector>

#include "models/data_parallel/fully_sharded.h"
#include "models/layers/embedding.h"
#include "models/layers/norm.h"
#include "models/layers/parallel_linear.h"
#include "models/pipeline/mock_data.h"
#include "models/pipeline/prediction_layer.h"
#include "models/pipeline/transformer_layer.h"
#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

/// What a forward of a chunk returns: hidden states, or the loss of each token. `logits` are those
/// of the loss where somebody holds them until its backward; else they are undefined.
struct ChunkOutput {
  at::Tensor output, logits;
};

class ModelChunk {
 public:
  /// Builds `chunk` of this rank's stage. Adds its parameters to `store`, which must outlive it.
  ModelChunk(ShardContext& context,
             ParameterStore& store,
             int64_t chunk,
             const SharedParts& shared);

  /// `input` is the tokens [s, b] in the first piece, and in other pieces the hidden states of the
  /// piece before, [s or s/t, b, h]. The last piece returns the loss of each token for the labels
  /// (or, if there are none, the logits as its output); other pieces return hidden states.
  ChunkOutput forward(const at::Tensor& input, const MicroBatchData& data) const;

  /// The embedding weight that the first and the last stage share, or null.
  Parameter* tied_weight() const { return tied_weight_; }
  const std::vector<TransformerLayer>& layers() const { return layers_; }
  /// Its FSDP units.
  ChunkUnits units() const { return units_; }
  /// Those of the output layer, if the chunk has it; see ColumnParallelLinear.
  void compute_deferred_gradients() const;

 private:
  friend class ChunkPieces;  // runs it in pieces

  void build_end(ParameterStore& store,
                 int64_t chunk,
                 const LayerNumber& next,
                 const SharedParts& shared);
  void begin_head(ParameterStore& store);
  void build_predictions(ParameterStore& store, const LayerNumber& next, const SharedParts& shared);
  void build_output(ParameterStore& store);
  Parameter* shared_output_weight(ParameterStore& store);
  /// Runs body(input) when the unit's parameters are gathered. With FSDP they are while it runs.
  at::Tensor in_unit(int64_t unit, const at::Tensor& input, const UnitBody& body) const;
  /// Where a unit's parameters are whole all the time: those that are being gathered are needed.
  void enter_unit(int64_t unit) const;
  /// What layers share in a forward.
  void begin_layers(const MicroBatchData& data) const;
  void end_layers() const;
  /// Whether layers that predict more tokens come between the final norm and the head.
  bool norm_is_apart() const { return context_.plan.model.predicts_more_tokens(); }
  at::Tensor embed(const at::Tensor& tokens) const;
  at::Tensor normalized(const at::Tensor& hidden) const;
  at::Tensor logits(const at::Tensor& normalized) const;
  at::Tensor loss(at::Tensor logits, const at::Tensor& labels) const;
  ChunkUnits all_units(const ParameterStore& store, int64_t first) const;
  ChunkOutput compute(const at::Tensor& input, const MicroBatchData& data) const;
  at::Tensor through_layers(at::Tensor hidden) const;
  at::Tensor through_layer(std::size_t number, const at::Tensor& input) const;
  /// Those from `first` to before `end`, recomputed as one.
  at::Tensor through_joined(std::size_t first, std::size_t end, const at::Tensor& input) const;
  ChunkOutput with_loss(at::Tensor hidden, const at::Tensor& labels) const;
  ChunkOutput handed_out(ChunkOutput result) const;
  /// The hidden states and, after them along the sequence, those of each further prediction.
  at::Tensor predict(const at::Tensor& hidden, at::Tensor tokens) const;
  /// The hidden states, to which the losses of the further predictions are attached.
  at::Tensor with_losses(const at::Tensor& predictions, at::Tensor labels) const;

  ShardContext& context_;
  std::shared_ptr<const RotaryEmbedding> rotary_, rotary_in_window_;
  std::shared_ptr<WindowMask> window_;  ///< null where no layer reads a mask
  std::unique_ptr<Embedding> embedding_;
  std::vector<TransformerLayer> layers_;
  std::unique_ptr<Norm> final_norm_;
  std::vector<PredictionLayer> predictions_;
  std::unique_ptr<ColumnParallelLinear> output_;
  Parameter* tied_weight_ = nullptr;
  std::vector<int64_t> layer_units_, prediction_units_;
  int64_t embedding_unit_ = 0, norm_unit_ = 0, head_unit_ = 0;
  ChunkUnits units_;
  int64_t chunk_;
  bool is_first_;
};

}  // namespace models
