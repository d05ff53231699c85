#include "models/shard/quantized_values.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/where.h>

#include "estimator/base/units.h"
#include "models/shard/four_bits.h"

namespace models {

double largest_number(c10::ScalarType type) { return type == at::kFloat8_e5m2 ? 57344 : 448; }

bool has_fp32_blocks(const at::Tensor& scale) {
  return scale.dim() == 2 && scale.scalar_type() == at::kFloat;
}

namespace {

/// One byte is the exponent of a power of two, plus this.
constexpr int64_t kExponentBias = 127;

at::Tensor blocks_of(const at::Tensor& matrix) {
  return matrix.unflatten(-1, {-1, kScaledTogether});
}

/// [rows, blocks] in fp32.
at::Tensor factors(const at::Tensor& scale, const at::Tensor& matrix) {
  return at::exp2(scale.narrow(0, 0, matrix.size(0))
                      .narrow(1, 0, matrix.size(1) / kScaledTogether)
                      .to(at::kFloat)
                      .sub(kExponentBias));
}

void write_scales(const at::Tensor& scale, const at::Tensor& values, c10::ScalarType type) {
  const at::Tensor exponents = blocks_of(values)
                                   .abs()
                                   .amax(-1)
                                   .div(largest_number(type))
                                   .log2()
                                   .ceil()
                                   .add(kExponentBias)
                                   .clamp(0, 254);
  scale.zero_();
  scale.narrow(0, 0, exponents.size(0)).narrow(1, 0, exponents.size(1)).copy_(exponents);
}

constexpr int64_t kFp32Block = 128;

/// [rows, columns] with zeros up to whole blocks.
at::Tensor padded(const at::Tensor& values, int64_t block_rows) {
  const auto missing = [](int64_t size, int64_t block) {
    return estimator::round_up(size, block) - size;
  };
  return at::constant_pad_nd(
      values, {0, missing(values.size(1), kFp32Block), 0, missing(values.size(0), block_rows)});
}

/// Of each element. Scales of squares are fewer than rows.
at::Tensor fp32_factors(const at::Tensor& scale, const at::Tensor& matrix) {
  const bool squares = scale.size(0) < matrix.size(0);
  const at::Tensor of_rows = squares ? scale.repeat_interleave(kFp32Block, 0) : scale;
  return of_rows.narrow(0, 0, matrix.size(0))
      .repeat_interleave(kFp32Block, 1)
      .narrow(1, 0, matrix.size(1));
}

void write_fp32_blocks(const at::Tensor& matrix,
                       const at::Tensor& scale,
                       const at::Tensor& values) {
  const int64_t block_rows = scale.size(0) < values.size(0) ? kFp32Block : 1;
  const at::Tensor largest = padded(values.abs(), block_rows)
                                 .unflatten(0, {-1, block_rows})
                                 .unflatten(-1, {-1, kFp32Block})
                                 .amax({1, 3});
  const at::Tensor powers = largest.div(largest_number(matrix.scalar_type())).log2().ceil().exp2();
  scale.fill_(1);
  scale.narrow(0, 0, powers.size(0))
      .narrow(1, 0, powers.size(1))
      .copy_(at::where(largest > 0, powers, 1));
  matrix.copy_(values.div(fp32_factors(scale, values)));
}

}  // namespace

at::Tensor in_fp32(const QuantizedOperand& operand) {
  if (operand.largest.defined())
    return read_four_bits({operand.matrix, operand.scale, operand.largest});
  const at::Tensor values = operand.matrix.to(at::kFloat);
  if (operand.scale.numel() == 1) return values.mul(operand.scale);
  if (has_fp32_blocks(operand.scale)) return values.mul(fp32_factors(operand.scale, values));
  return blocks_of(values).mul(factors(operand.scale, values).unsqueeze(-1)).flatten(-2);
}

at::Tensor right_in_fp32(const QuantizedOperand& operand) {
  return in_fp32(operand.transposed()).t();
}

void write_blocks(const at::Tensor& matrix, const at::Tensor& scale, const at::Tensor& values) {
  if (has_fp32_blocks(scale)) return write_fp32_blocks(matrix, scale, values);
  write_scales(scale, values, matrix.scalar_type());
  matrix.copy_(blocks_of(values).div(factors(scale, values).unsqueeze(-1)).flatten(-2));
}

}  // namespace models
