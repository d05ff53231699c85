// softmax(Q K^T / sqrt(d)) V with a causal mask: flash (torch's flash kernel, saves q, k, v, the
// output and a log-sum for each row) or unfused (saves the s x s weights).
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard_context.h"

namespace models {

class CoreAttention {
 public:
  explicit CoreAttention(const ShardContext& context);

  /// query [s, b, heads, d], key and value [s, b, groups, d] -> [s, b, heads * d].
  at::Tensor forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;

 private:
  at::Tensor flash(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;
  at::Tensor unfused(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;

  estimator::Attention kind_;
  double dropout_;
  at::Tensor future_;  ///< [1, s, s] bool, true where a key lies in the future; unfused only
};

}  // namespace models
