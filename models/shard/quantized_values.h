// The numbers that quantized matrices stand for, on devices that compute values: scales of a whole
// tensor, of blocks of 32 elements in a power of two (MXFP8), of blocks and squares of 128 in fp32,
// and those of 4 bits (four_bits.h).
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/quantized.h"

namespace models {

/// Of a type of 8 bits.
double largest_number(c10::ScalarType type);

/// Whether these are scales of blocks or squares in fp32.
bool has_fp32_blocks(const at::Tensor& scale);

/// Of a left operand, [m, k].
at::Tensor in_fp32(const QuantizedOperand& operand);
/// Of a right one, [k, n], which has its scales along its columns.
at::Tensor right_in_fp32(const QuantizedOperand& operand);

/// Writes the scales of `values`, fp32 of the shape of `matrix`, and what they leave of these.
void write_blocks(const at::Tensor& matrix, const at::Tensor& scale, const at::Tensor& values);

}  // namespace models
