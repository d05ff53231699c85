// One pipeline stage of one rank: embedding on the first, layers, final norm and loss on the last.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "models/embedding.h"
#include "models/norm.h"
#include "models/parallel_linear.h"
#include "models/parameters.h"
#include "models/shard_context.h"
#include "models/transformer_layer.h"

namespace models {

class Stage {
 public:
  explicit Stage(ShardContext& context);

  /// First stage: tokens [s, b]. Others: hidden states of the stage before, [s or s/t, b, h].
  /// Last stage: the loss of each token for `labels` [s, b]. Others: hidden states.
  at::Tensor forward(const at::Tensor& input, const at::Tensor& labels) const;

  ParameterStore& parameters() { return store_; }
  const ParameterStore& parameters() const { return store_; }
  /// The embedding weight that first and last stage share, or null.
  Parameter* tied_weight() const { return tied_weight_; }
  /// Shape of what travels between stages.
  std::vector<int64_t> hidden_shape() const;

 private:
  void build_head();
  at::Tensor loss(const at::Tensor& hidden, const at::Tensor& labels) const;

  ShardContext& context_;
  ParameterStore store_;
  std::unique_ptr<Embedding> embedding_;
  std::vector<TransformerLayer> layers_;
  std::unique_ptr<Norm> final_norm_;
  std::unique_ptr<ColumnParallelLinear> output_;
  Parameter* tied_weight_ = nullptr;
};

}  // namespace models
