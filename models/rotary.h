// Rotary position embedding (Su et al. 2021), halves rotated against each other as in GPT-NeoX and
// Llama: (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin).
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard_context.h"

namespace models {

/// Tables of one shard's part of the sequence, [rows, 1, 1, width], in the model's type; made once
/// and shared.
class RotaryEmbedding {
 public:
  explicit RotaryEmbedding(const ShardContext& context);
  /// [sequence, batch, heads, width] -> the same. In the megatron dialect one fused function that
  /// saves nothing but the tables; else plain operators.
  at::Tensor apply(const at::Tensor& input) const;
  /// The same, written over the input.
  at::Tensor apply_in_place(const at::Tensor& input) const;

 private:
  bool fused_;
  at::Tensor cos_, sin_;
};

}  // namespace models
