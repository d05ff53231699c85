// What stands between a layer's second norm and its residual: an MLP, or a mixture of experts.
#pragma once

#include <ATen/core/Tensor.h>

namespace models {

class FeedForward {
 public:
  virtual ~FeedForward() = default;
  /// [s or s/t, b, h] -> the same shape, without the output bias.
  virtual at::Tensor forward(const at::Tensor& input) const = 0;
  /// What the caller adds, or an undefined tensor.
  virtual at::Tensor bias() const = 0;
};

}  // namespace models
