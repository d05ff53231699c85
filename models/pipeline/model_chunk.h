// A piece of the model: one model chunk of a stage, or the whole stage if stages are not
// interleaved. The first piece has the embedding; the last one has the final norm, the head and the
// loss.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "models/layers/embedding.h"
#include "models/layers/norm.h"
#include "models/layers/parallel_linear.h"
#include "models/pipeline/transformer_layer.h"
#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

class ModelChunk {
 public:
  /// Builds `chunk` of this rank's stage. Adds its parameters to `store`, which must outlive it.
  ModelChunk(ShardContext& context,
             ParameterStore& store,
             int64_t chunk,
             const SharedParts& shared);

  /// `input` is the tokens [s, b] in the first piece, and in other pieces the hidden states of the
  /// piece before, [s or s/t, b, h]. The last piece returns the loss of each token for `labels` [s,
  /// b]; other pieces return hidden states.
  at::Tensor forward(const at::Tensor& input, const at::Tensor& labels) const;

  /// The embedding weight that the first and the last stage share, or null.
  Parameter* tied_weight() const { return tied_weight_; }
  /// The FSDP unit with which the forward ends.
  int64_t head_unit() const { return head_unit_; }
  /// Those of the output layer, if the chunk has it; see ColumnParallelLinear.
  void compute_deferred_gradients() const;

 private:
  void build_head(ParameterStore& store);
  /// Runs body(input) when the unit's parameters are gathered. With FSDP they are while it runs.
  at::Tensor in_unit(int64_t unit,
                     const at::Tensor& input,
                     const std::function<at::Tensor(const at::Tensor&)>& body) const;
  at::Tensor logits(const at::Tensor& hidden) const;
  at::Tensor loss(at::Tensor logits, const at::Tensor& labels) const;

  ShardContext& context_;
  std::shared_ptr<const RotaryEmbedding> rotary_;
  std::unique_ptr<Embedding> embedding_;
  std::vector<TransformerLayer> layers_;
  std::unique_ptr<Norm> final_norm_;
  std::unique_ptr<ColumnParallelLinear> output_;
  Parameter* tied_weight_ = nullptr;
  std::vector<int64_t> layer_units_;
  int64_t embedding_unit_ = 0, head_unit_ = 0;
};

}  // namespace models
