// Rotary position embedding (Su et al. 2021), halves rotated against each other as in GPT-NeoX and
// Llama: (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin).
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/shard_context.h"

namespace models {

/// Cosine and sine of each angle, [rows, 1, 1, width].
struct RotaryTables {
  at::Tensor cos, sin;
};

/// `input` turned by the tables' angles, or by `sign` -1 turned back; without autograd.
at::Tensor rotate(const at::Tensor& input, const RotaryTables& tables, int sign);
/// The same, written over the input. (A temporary of half of it, where a fused kernel has none.)
void rotate_in_place(const at::Tensor& input, const RotaryTables& tables, int sign);

/// Tables of one shard's part of the sequence, [rows, 1, 1, width], in the model's type; made once
/// and shared.
class RotaryEmbedding {
 public:
  /// Of whole heads, fused in the megatron framework, or of `width` of each. `keeps_angles`: the
  /// fp32 angles last beside the tables.
  explicit RotaryEmbedding(const ShardContext& context);
  RotaryEmbedding(const ShardContext& context,
                  int64_t width,
                  bool fused,
                  bool keeps_angles = false);
  /// [sequence, batch, heads, width] -> the same: one fused function that saves nothing but the
  /// tables, or plain operators.
  at::Tensor apply(const at::Tensor& input) const;
  /// The same, written over the input.
  at::Tensor apply_in_place(const at::Tensor& input) const;

  const RotaryTables& tables() const { return tables_; }

 private:
  bool fused_;
  RotaryTables tables_;
  at::Tensor angles_;  ///< fp32, undefined where they are dropped
};

}  // namespace models
