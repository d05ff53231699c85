// The MLP of one layer, plain (two matrices) or gated (SwiGLU, GeGLU: three, the first two in one).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/parallel_linear.h"

namespace models {

class Mlp {
 public:
  Mlp(ShardContext& context, ParameterStore& store, const std::string& name);
  /// [s or s/t, b, h] -> the same shape, without the output bias.
  at::Tensor forward(const at::Tensor& input) const;
  at::Tensor bias() const { return second_.bias(); }

 private:
  at::Tensor activate(const at::Tensor& input) const;

  ShardContext& context_;
  ColumnParallelLinear first_;
  RowParallelLinear second_;
};

}  // namespace models
