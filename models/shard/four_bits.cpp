#include "models/shard/four_bits.h"

#include <ATen/ops/bucketize.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

namespace models {
namespace {

constexpr int64_t kScaled = 16;  // elements of one scale
constexpr double kLargestElement = 6, kLargestScale = 448;
constexpr int64_t kSign = 8;  // of the four bits

at::Tensor on(const at::Tensor& like, at::ArrayRef<double> numbers) {
  return at::tensor(numbers, like.options().dtype(at::kFloat));
}

/// The numbers of three bits.
at::Tensor magnitudes(const at::Tensor& like) { return on(like, {0, 0.5, 1, 1.5, 2, 3, 4, 6}); }

/// The bits of the nearest number, one element a byte.
at::Tensor rounded(const at::Tensor& values) {
  const at::Tensor halfway = on(values, {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5});
  const at::Tensor bits = at::bucketize(values.abs(), halfway);
  return bits.add(values.lt(0).mul(kSign));
}

at::Tensor packed(const at::Tensor& bits) {
  const at::Tensor pairs = bits.unflatten(-1, {-1, 2});
  return pairs.select(-1, 0).add(pairs.select(-1, 1), 16).to(at::kByte);
}

at::Tensor unpacked(const at::Tensor& bytes) {
  const at::Tensor bits =
      at::stack({bytes.bitwise_and(15), bytes.bitwise_right_shift(4)}, -1).flatten(-2);
  const at::Tensor magnitude = magnitudes(bytes).take(bits.bitwise_and(kSign - 1).to(at::kLong));
  return magnitude.mul(bits.ge(kSign).to(at::kFloat).mul(-2).add(1));
}

at::Tensor raw(const at::Tensor& matrix) { return matrix.view(at::kByte); }

/// What blocks' scales are multiplied by.
at::Tensor unit_of(const at::Tensor& largest) {
  return largest.div(kLargestElement * kLargestScale).clamp_min(1e-30);
}

/// [rows, blocks] of the numbers that elements are multiplied by.
at::Tensor four_bit_factors(const FourBits& of, int64_t rows, int64_t columns) {
  return of.scale.narrow(0, 0, rows)
      .narrow(1, 0, columns / kScaled)
      .view(at::kFloat8_e4m3fn)
      .to(at::kFloat)
      .mul(unit_of(of.largest));
}

void write_block_scales(const FourBits& to, const at::Tensor& largest_of_blocks) {
  const at::Tensor scales = largest_of_blocks.div(unit_of(to.largest).mul(kLargestElement));
  to.scale.zero_();
  to.scale.narrow(0, 0, scales.size(0))
      .narrow(1, 0, scales.size(1))
      .copy_(scales.to(at::kFloat8_e4m3fn).view(at::kByte));
}

at::Tensor over_factors(const at::Tensor& values, const at::Tensor& factors) {
  return values.div(factors.repeat_interleave(kScaled, 1).clamp_min(1e-30));
}

}  // namespace

void write_four_bits(const FourBits& to, const at::Tensor& values, bool square) {
  if (square) {
    write_square_scales(to,
                        largest_of_squares(values.flatten(), 0, values.size(0), values.size(1)));
  } else {
    write_block_scales(to, values.abs().unflatten(1, {-1, kScaled}).amax(-1));
  }
  const at::Tensor scaled =
      over_factors(values, four_bit_factors(to, values.size(0), values.size(1)));
  raw(to.bytes).copy_(packed(rounded(scaled)));
}

at::Tensor read_four_bits(const FourBits& from) {
  const at::Tensor values = unpacked(raw(from.bytes));
  return values.mul(
      four_bit_factors(from, values.size(0), values.size(1)).repeat_interleave(kScaled, 1));
}

at::Tensor largest_of_squares(const at::Tensor& values, int64_t begin, int64_t rows, int64_t k) {
  const at::Tensor all = at::zeros({rows * k}, values.options().dtype(at::kFloat));
  all.narrow(0, begin, values.numel()).copy_(values.abs());
  return all.view({rows / kScaled, kScaled, k / kScaled, kScaled}).amax({1, 3});
}

void write_square_scales(const FourBits& to, const at::Tensor& largest_of_squares) {
  write_block_scales(to, largest_of_squares.repeat_interleave(kScaled, 0));
}

void write_elements(const FourBits& whole,
                    const at::Tensor& bytes,
                    const at::Tensor& values,
                    int64_t begin) {
  const int64_t rows = whole.bytes.size(0), k = 2 * whole.bytes.size(1);
  const at::Tensor factor =
      four_bit_factors(whole, rows, k).repeat_interleave(kScaled, 1).flatten();
  const at::Tensor scaled =
      values.to(at::kFloat).flatten().div(factor.narrow(0, begin, values.numel()).clamp_min(1e-30));
  raw(bytes).flatten().copy_(packed(rounded(scaled)));
}

void write_transposed(const FourBits& to, const FourBits& from) {
  write_four_bits(to, read_four_bits(from).t().contiguous(), /*square=*/true);
}

}  // namespace models
