// Values of matrices in 4 bits: two elements (e2m1) in a byte, a scale in e4m3 for 16 elements that
// a product sums, and the largest element of the tensor in fp32 (NVFP4BlockScaling in
// transformer_engine/common/recipe). Rounded to the nearest, and without the Hadamard transforms of
// both operands of a weight gradient, which their product undoes.
#pragma once

#include <ATen/core/Tensor.h>

namespace models {

/// What stands for a matrix [rows, k]: bytes [rows, k / 2], scales of at least [rows, k / 16] and
/// the largest element [1].
struct FourBits {
  at::Tensor bytes, scale, largest;
};

/// Of `values` [rows, k] in fp32; with `square` 16 rows have one scale, too.
void write_four_bits(const FourBits& to, const at::Tensor& values, bool square);
/// fp32 [rows, k].
at::Tensor read_four_bits(const FourBits& from);

/// The largest of each 16 x 16 elements of a matrix [rows, k], of which `values` are the elements
/// from `begin` on in the order of its memory: [rows / 16, k / 16].
at::Tensor largest_of_squares(const at::Tensor& values, int64_t begin, int64_t rows, int64_t k);
/// Scales of all rows from those numbers.
void write_square_scales(const FourBits& to, const at::Tensor& largest_of_squares);
/// Rounds the elements from `begin` on of a matrix [rows, k] into `bytes`, by scales that are
/// there.
void write_elements(const FourBits& whole,
                    const at::Tensor& bytes,
                    const at::Tensor& values,
                    int64_t begin);
/// A matrix with scales of squares, transposed.
void write_transposed(const FourBits& to, const FourBits& from);

}  // namespace models
