// Rotary position embedding (Su et al. 2021). The two halves of a head are rotated as in GPT-NeoX
// and in Hugging Face's Llama: (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin). Complex numbers are
// pairs of neighbours, as in Meta's Llama.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "models/shard/shard_context.h"

namespace models {

/// Cosine and sine of each angle, [rows, 1, 1, width].
struct RotaryTables {
  at::Tensor cos, sin;
  at::Tensor angles = {};     ///< fp32; undefined if they are not kept
  at::Tensor rotations = {};  ///< complex, [rows, 1, 1, width / 2], in place of cosine and sine
  at::Tensor both = {};       ///< fp32 cosine and sine side by side, if layers get them
};

/// `input` rotated by the angles of the tables, or rotated back if `sign` is -1; without autograd.
at::Tensor rotate(const at::Tensor& input, const RotaryTables& tables, int sign);
/// The same, but overwrites the input. It needs a temporary of half the input's size; a fused
/// kernel would need none.
void rotate_in_place(const at::Tensor& input, const RotaryTables& tables, int sign);

/// The tables for one shard's part of the sequence, [rows, 1, 1, width], in the model's type. They
/// are made when they are first used, or in each forward. If the angles are not kept, both tables
/// lie in one block, which is as large as the fp32 angles or complex numbers that frameworks keep
/// instead.
class RotaryEmbedding {
 public:
  /// The first form is for whole heads, and fused if the framework has a fused kernel; the second
  /// one is for `width` elements of each head. With `keeps_angles` the fp32 angles are kept beside
  /// the tables.
  RotaryEmbedding(const ShardContext& context, double base);
  RotaryEmbedding(const ShardContext& context,
                  double base,
                  int64_t width,
                  bool fused,
                  bool keeps_angles = false);
  /// [sequence, batch, heads, width] -> the same shape; what is wider than the tables has no
  /// positions. It is one fused function, which saves nothing but the tables, or plain operators,
  /// of complex numbers in some frameworks.
  at::Tensor apply(const at::Tensor& input) const;
  /// The same, but overwrites the input.
  at::Tensor apply_in_place(const at::Tensor& input) const;

  const RotaryTables& tables() const;
  /// A forward of the model begins: there are tables, made for it where the framework does so.
  void begin_forward() const;

  /// The fp32 cosines and sines, [rows, 1, 1, 2 x width], are an argument of each layer, and FSDP2
  /// casts them for it (cast_forward_inputs of MixedPrecisionPolicy), as here. Undefined where they
  /// are no argument.
  at::Tensor argument_of_layer() const;
  /// The layer that runs now has got this argument; undefined: it is over.
  void take_argument(const at::Tensor& argument) const;

 private:
  RotaryTables make_tables() const;
  RotaryTables halves_of(const at::Tensor& both) const;
  RotaryTables tables_of_forward() const;
  at::Tensor apply_angles(const at::Tensor& input) const;

  Observer& observer_;
  at::TensorOptions options_;
  ContextPlace place_;
  int64_t sequence_;
  int64_t width_;
  double base_;
  bool fused_;
  bool complex_;
  bool is_argument_;     ///< see argument_of_layer()
  bool casts_argument_;  ///< the same
  bool from_angles_;     ///< each use makes cosine and sine of the angles, and keeps them
  bool keeps_angles_;
  bool in_each_forward_;
  at::Tensor frequencies_;  ///< fp32, [width / 2]; of tables that are made in each forward
  std::unique_ptr<RotaryTables> tables_ = std::make_unique<RotaryTables>();
  std::unique_ptr<RotaryTables> of_layer_ = std::make_unique<RotaryTables>();  ///< its argument's
};

}  // namespace models
