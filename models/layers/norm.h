// LayerNorm and RMSNorm over the last dimension. Like the fused kernels they save the input and, in
// fp32, the mean and the reciprocal standard deviation of each row.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/shard/shard_context.h"

namespace models {

class Norm {
 public:
  /// A norm over hidden_size, or over rows of `width`.
  Norm(ShardContext& context, ParameterStore& store, const std::string& name);
  Norm(ShardContext& context, ParameterStore& store, const std::string& name, int64_t width);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  estimator::Normalization kind_;
  double epsilon_;
  Parameter* weight_;
  Parameter* bias_ = nullptr;
};

}  // namespace models
