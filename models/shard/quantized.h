// Matrices in 8 or 4 bits, as TransformerEngine's linear layers multiply them (--fp8-format,
// --fp4-format).
//
// With one scale for a tensor, this is the largest one with which the largest element fits
// (--fp8-recipe tensorwise, Float8CurrentScalingQuantizer), or it is found from earlier iterations
// (delayed, Float8Quantizer). On Hopper a product of 8-bit matrices reads both operands along their
// common dimension, so that a matrix of which products sum along either dimension is kept twice: by
// rows, and transposed. From compute capability 10 on one copy serves both
// (is_non_tn_fp8_gemm_supported in transformer_engine/pytorch/utils.py).
//
// With scales for blocks of elements that a product sums each copy has scales of its own. Those of
// 32 elements (mxfp8, MXFP8Quantizer) are powers of two in a byte, and neither copy is transposed.
// Those of 16 elements in 4 bits (nvfp4, NVFP4Quantizer) are in e4m3, and are fractions of what the
// tensor's largest element allows; there the second copy is transposed, of inputs and gradients
// after a Hadamard transform. Those of 128 elements in 8 bits (blockwise, Float8BlockQuantizer) are
// powers of two in fp32, those of a weight for squares of 128 x 128; the second copy is transposed,
// too, and scales lie with blocks before rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "estimator/plan/plan.h"
#include "estimator/plan/quantization.h"
#include "models/shard/communicator.h"

namespace models {

/// Elements that a product sums which have one scale, a power of two, with the recipe mxfp8.
inline constexpr int64_t kScaledTogether = 32;

/// A matrix of a product, [m, n], and what its elements are to be multiplied by: fp32 [1], or a
/// byte for every block of a row, [m, n / block], padded to multiples of 128 and 4; or fp32 for
/// every block of a row or of a square, padded to a multiple of 4. Two elements of 4 bits that a
/// product sums are one of the matrix.
struct QuantizedOperand {
  at::Tensor matrix, scale;
  at::Tensor largest;  ///< in 4 bits: the largest element, fp32 [1]
  /// The scales lie in memory as products read them: true of one scale.
  bool scale_is_ready = true;
  QuantizedOperand transposed() const;
};

/// A tensor [..., k] of m rows, or what is kept of it.
struct Quantized {
  at::Tensor by_rows;           ///< [..., k]
  at::Tensor by_columns;        ///< [k, m], its transpose
  at::Tensor scale_of_rows;     ///< fp32 [1] of the whole tensor, or as in QuantizedOperand
  at::Tensor scale_of_columns;  ///< the same one, or of by_columns
  at::Tensor largest_of_rows, largest_of_columns;  ///< in 4 bits
  at::Tensor arrived_columns, arrived_scale;       ///< of other ranks, each rank's part by itself
  bool scales_are_ready = true;

  /// [m, k] for products that sum along its rows, or along its columns.
  QuantizedOperand along_rows() const;
  QuantizedOperand along_columns() const;
  /// Those that have memory, each once.
  std::vector<at::Tensor> tensors() const;
};

/// What a tensor is to a layer: TransformerEngine has a quantizer for each.
enum class QuantizedRole { kInput, kWeight, kGradient };

/// Which products a tensor is for: those that sum along its rows, those that sum along its columns.
struct QuantizedUse {
  bool rows = true, columns = true;
  bool waits = false;  ///< for other ranks' parts, or for later products
  /// A norm's kernel made the tensor: it finds the largest element, too, or where the scale is
  /// known it writes the rows itself (pytorch/csrc/extensions/normalization.cpp of
  /// TransformerEngine).
  bool of_norm = false;
  bool squares = false;  ///< scales are those of squares
};

class QuantizedProducts {
 public:
  QuantizedProducts(const estimator::Plan& plan, bool device_computes);

  /// Whether the scale comes from the tensor itself, so that it may be quantized again later.
  bool finds_scale() const { return traits_.finds_scale; }
  /// Whether the copy by columns is made with the one by rows alone, so that all ranks' parts of it
  /// are gathered as those by rows are.
  bool gathers_columns() const { return has_blocks(); }
  /// Whether a tensor along whose columns products sum is kept by columns.
  bool keeps_columns() const { return !one_copy_; }
  /// Whether new weights are gathered in 16 bits, and then quantized; else as they are kept.
  bool gathers_before_quantizing() const { return traits_.gathers_in_16_bits; }
  /// Whether the columns of a weight, which have the scales of its rows, are made of these when a
  /// backward first reads them, if the first forward had none (update_usage in transformer_engine/
  /// pytorch/tensor/storage/float8_blockwise_tensor_storage.py): a layer that is computed again.
  bool makes_columns_late() const { return traits_.fp32_scales; }
  void make_columns_of_squares(Quantized& held) const;
  bool in_four_bits() const { return traits_.bits == 4; }
  /// Elements in one of a matrix' bytes.
  int64_t elements_of_byte() const { return in_four_bits() ? 2 : 1; }

  /// If the ranks of `group` (may be null) have parts of the tensor, they agree on its one scale.
  Quantized quantize(const at::Tensor& tensor,
                     QuantizedRole role,
                     QuantizedUse use,
                     const std::shared_ptr<Communicator>& group = nullptr) const;
  /// Each part of a tensor [sum of rows_of, k] by itself; with blocks all parts lie in one
  /// allocation for each direction (split_quantize in pytorch/csrc/extensions/cast.cpp).
  std::vector<Quantized> quantize_parts(const at::Tensor& tensor,
                                        const std::vector<int64_t>& rows_of,
                                        QuantizedRole role,
                                        QuantizedUse use) const;
  /// Writes a weight of the same shape over what an earlier call made.
  void quantize_into(Quantized& held, const at::Tensor& tensor) const;
  /// Writes the values of by_rows into a tensor of the same shape, without an operator of a real
  /// run.
  void read(const Quantized& held, const at::Tensor& values) const;
  /// The values of `part`, some elements of the flattened by_rows, in 16 bits.
  at::Tensor values_of(const Quantized& held, const at::Tensor& part, c10::ScalarType type) const;
  /// Makes by_columns from by_rows, or from what has arrived, if products need it, or brings it up
  /// to date.
  void transpose(Quantized& held) const;
  /// Memory for the parts of all ranks of `group`, of which each has `part`. The scales of blocks
  /// travel with them in one call.
  Quantized memory_for_all(const Quantized& part, const Communicator& group) const;
  PendingCall gather(Quantized& whole,
                     const Quantized& part,
                     Communicator& group,
                     bool overlaps) const;

  /// Whether weights have a scale for each square of 16 x 16 elements. The steps for a part of one:
  /// the largest elements of all its squares, 0 where it has none; the scales from those of all
  /// ranks, and the largest of all; and the values.
  bool has_squares() const { return in_four_bits(); }
  std::vector<int64_t> squares_of(const Quantized& held) const;
  at::Tensor measure_squares(const Quantized& held,
                             const at::Tensor& part,
                             const at::Tensor& values) const;
  void set_squares(const Quantized& held,
                   const at::Tensor& squares,
                   const at::Tensor& largest) const;
  void write_squares(const Quantized& held, const at::Tensor& part, const at::Tensor& values) const;
  bool computes() const { return device_computes_; }

  /// The steps of quantize(), for a matrix of which a rank writes a part. measures(): a scale is
  /// found from the values that it is for. measure(): `largest` [1] becomes the largest element.
  /// write_part(): `part` are some elements of the flattened by_rows, `values` as many.
  bool measures() const { return traits_.scales_tensor && (finds_scale() || device_computes_); }
  void measure(const at::Tensor& values, const at::Tensor& largest) const;
  void set_scale(Quantized& held, const at::Tensor& largest) const;
  void write_part(const Quantized& held, const at::Tensor& part, const at::Tensor& values) const;

  /// left [m, k] x right [k, n], plus the bias [n] if there is one, in the type `result`: [m, n].
  at::Tensor multiply(const QuantizedOperand& left,
                      const QuantizedOperand& right,
                      c10::ScalarType result,
                      const std::optional<at::Tensor>& bias = std::nullopt) const;
  /// The operands of products that are issued together, with scales as these read them: made in
  /// one allocation where they are not yet so.
  std::vector<QuantizedOperand> ready(std::vector<QuantizedOperand> operands) const;
  /// out = left x right; `out` [m, n] is in 16 bits.
  void multiply_into(at::Tensor& out,
                     const QuantizedOperand& left,
                     const QuantizedOperand& right) const;
  /// sum += left x right; `sum` [m, n] is fp32.
  void multiply_and_add(at::Tensor& sum,
                        const QuantizedOperand& left,
                        const QuantizedOperand& right) const;

 private:
  bool has_blocks() const { return traits_.block > 0; }
  c10::ScalarType type_of(QuantizedRole role) const;
  void find_scale(const at::Tensor& tensor,
                  Quantized& held,
                  QuantizedRole role,
                  const std::shared_ptr<Communicator>& group,
                  bool of_norm = false) const;
  void fill(Quantized& held,
            const at::Tensor& tensor,
            QuantizedRole role,
            bool of_norm = false) const;
  // In 4 bits; the tensors of a call are those of one kernel.
  void find_largest(std::span<Quantized> held,
                    const std::vector<at::Tensor>& tensors,
                    QuantizedRole role,
                    const std::shared_ptr<Communicator>& group) const;
  void fill_four_bits(std::span<Quantized> held,
                      const std::vector<at::Tensor>& tensors,
                      QuantizedRole role) const;
  void expect_columns(Quantized& whole, const Quantized& part, int64_t ranks) const;
  void join_columns(Quantized& held) const;
  at::Tensor joined(const at::Tensor& parts, const at::Tensor& like, int64_t k) const;
  void join_row_scales(Quantized& held) const;
  PendingCall gather_fp32_blocks(const Quantized& whole,
                                 const Quantized& part,
                                 Communicator& group) const;
  void transpose_squares(Quantized& held) const;
  at::Tensor scales_without_padding(const Quantized& part) const;
  int64_t element_of(const Quantized& held, const at::Tensor& part) const;

  estimator::QuantizationTraits traits_;
  bool one_copy_;  ///< serves products along both dimensions
  bool device_computes_;
  c10::ScalarType gradient_type_;
};

}  // namespace models
