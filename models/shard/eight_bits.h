// Matrices in 8 bits, as TransformerEngine's linear layers multiply them (--fp8-format).
//
// With one scale for a tensor, this is the largest one with which the largest element fits
// (--fp8-recipe tensorwise, Float8CurrentScalingQuantizer), or it is found from earlier iterations
// (delayed, Float8Quantizer). On Hopper a product of 8-bit matrices reads both operands along their
// common dimension, so that a matrix of which products sum along either dimension is kept twice: by
// rows, and transposed. From compute capability 10 on one copy serves both
// (is_non_tn_fp8_gemm_supported in transformer_engine/pytorch/utils.py).
//
// With a scale for every 32 elements that a product sums (mxfp8, MXFP8Quantizer) each copy has
// scales of its own, powers of two in a byte. Neither is transposed.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "estimator/plan/plan.h"
#include "models/shard/communicator.h"

namespace models {

/// A matrix of a product, [m, n], and what its elements are to be multiplied by: fp32 [1], or a
/// byte for every 32 elements of a row, [m, n / 32], padded to multiples of 128 and 4.
struct EightBitOperand {
  at::Tensor matrix, scale;
  /// The scales lie in memory as products read them: true of one scale.
  bool scale_is_ready = true;
  EightBitOperand transposed() const;
};

/// A tensor [..., k] of m rows, or what is kept of it.
struct EightBits {
  at::Tensor by_rows;           ///< [..., k]
  at::Tensor by_columns;        ///< [k, m], its transpose
  at::Tensor scale_of_rows;     ///< fp32 [1] of the whole tensor, or as in EightBitOperand
  at::Tensor scale_of_columns;  ///< the same one, or of by_columns
  bool scales_are_ready = true;

  /// [m, k] for products that sum along its rows, or along its columns.
  EightBitOperand along_rows() const;
  EightBitOperand along_columns() const;
  /// Those that have memory, each once.
  std::vector<at::Tensor> tensors() const;
};

/// Which products a tensor is for: those that sum along its rows, those that sum along its columns.
struct EightBitUse {
  bool rows = true, columns = true;
  bool waits = false;  ///< for other ranks' parts, or for later products
};

class EightBitProducts {
 public:
  EightBitProducts(const estimator::Plan& plan, bool device_computes);

  /// Whether the scale comes from the tensor itself, so that it may be quantized again later.
  bool finds_scale() const { return recipe_ != estimator::Fp8Recipe::kDelayed; }
  /// Whether the copy by columns is made with the one by rows alone, so that all ranks' parts of it
  /// are gathered as those by rows are.
  bool gathers_columns() const { return has_blocks(); }
  /// Whether a tensor along whose columns products sum is kept by columns.
  bool keeps_columns() const { return !one_copy_; }
  /// Whether new weights are gathered in 16 bits, and then quantized; else in 8 bits.
  bool gathers_before_quantizing() const { return has_blocks(); }
  /// Of weights and inputs, and of output gradients (--fp8-format hybrid: e5m2).
  c10::ScalarType type() const { return at::kFloat8_e4m3fn; }
  c10::ScalarType gradient_type() const { return gradient_type_; }

  /// If the ranks of `group` (may be null) have parts of the tensor, they agree on its one scale.
  EightBits quantize(const at::Tensor& tensor,
                     c10::ScalarType type,
                     EightBitUse use,
                     const std::shared_ptr<Communicator>& group = nullptr) const;
  /// Each part of a tensor [sum of rows_of, k] by itself; with blocks all parts lie in one
  /// allocation for each direction (split_quantize in pytorch/csrc/extensions/cast.cpp).
  std::vector<EightBits> quantize_parts(const at::Tensor& tensor,
                                        const std::vector<int64_t>& rows_of,
                                        c10::ScalarType type,
                                        EightBitUse use) const;
  /// Writes a tensor of the same shape over what an earlier call made.
  void quantize_into(EightBits& held, const at::Tensor& tensor) const;
  /// Writes the values of by_rows into a tensor of the same shape, without an operator of a real
  /// run.
  void read(const EightBits& held, const at::Tensor& values) const;
  /// Makes by_columns from by_rows, if products need it, or brings it up to date.
  void transpose(EightBits& held) const;
  /// Memory for the parts of all ranks of `group`, of which each has `part`. The scales of blocks
  /// travel with them in one call.
  EightBits memory_for_all(const EightBits& part, const Communicator& group) const;
  PendingCall gather(const EightBits& whole,
                     const EightBits& part,
                     Communicator& group,
                     bool overlaps) const;

  /// The steps of quantize(), for a matrix of which a rank writes a part. measures(): a scale is
  /// found from the values that it is for. measure(): `largest` [1] becomes the largest element.
  /// write_part(): `part` are some elements of the flattened by_rows, `values` as many.
  bool measures() const { return !has_blocks() && (finds_scale() || device_computes_); }
  void measure(const at::Tensor& values, const at::Tensor& largest) const;
  void set_scale(EightBits& held, const at::Tensor& largest) const;
  void write_part(const EightBits& held, const at::Tensor& part, const at::Tensor& values) const;

  /// left [m, k] x right [k, n], plus the bias [n] if there is one, in the type `result`: [m, n].
  at::Tensor multiply(const EightBitOperand& left,
                      const EightBitOperand& right,
                      c10::ScalarType result,
                      const std::optional<at::Tensor>& bias = std::nullopt) const;
  /// The operands of products that are issued together, with scales as these read them: made in
  /// one allocation where they are not yet so.
  std::vector<EightBitOperand> ready(std::vector<EightBitOperand> operands) const;
  /// out = left x right; `out` [m, n] is in 16 bits.
  void multiply_into(at::Tensor& out,
                     const EightBitOperand& left,
                     const EightBitOperand& right) const;
  /// sum += left x right; `sum` [m, n] is fp32.
  void multiply_and_add(at::Tensor& sum,
                        const EightBitOperand& left,
                        const EightBitOperand& right) const;

 private:
  bool has_blocks() const { return recipe_ == estimator::Fp8Recipe::kMxfp8; }
  EightBits empty(at::IntArrayRef shape, at::TensorOptions options, EightBitUse use) const;
  EightBits empty_with_scale(at::IntArrayRef shape,
                             at::TensorOptions options,
                             EightBitUse use) const;
  void find_scale(const at::Tensor& tensor,
                  EightBits& held,
                  const std::shared_ptr<Communicator>& group) const;
  void fill(EightBits& held, const at::Tensor& tensor) const;

  estimator::Fp8Recipe recipe_;
  bool one_copy_;  ///< serves products along both dimensions
  bool device_computes_;
  c10::ScalarType gradient_type_;
};

}  // namespace models
