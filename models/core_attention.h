// softmax(Q K^T / sqrt(d)) V with a causal mask: flash (torch's flash kernel, saves q, k, v, the
// output and a log-sum for each row), fused (the same, but the saved output is the one that the
// projection reads) or unfused (saves the s x s weights).
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
  /// Query, key and value are copied to [b, s, heads, d] for the flash-attn kernel, its output back
  /// (FlashAttention in transformer_engine's backends.py; CausalSelfAttention in nanotron's
  /// llama.py).
  bool batch_first_;
  /// Megatron-LM's own attention takes the input of its first product from the global memory buffer
  /// (megatron/core/transformer/dot_product_attention.py); null elsewhere.
  std::shared_ptr<FrameworkBuffers> buffers_;
  double dropout_;
  at::Tensor future_;  ///< [1, s, s] bool, true where a key lies in the future; unfused only
};

}  // namespace models
