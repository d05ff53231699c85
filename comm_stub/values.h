// The values that a call writes. Tensors are dense without gaps unless stated otherwise. Elements
// are copied in the order of memory, as a network moves them, whatever the strides are.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace comm_stub {

/// Writes what an absent root or sender would have sent: zeros.
void write_unknown(const at::Tensor& output);

/// Writes the start of `input` into each of `slots` equal pieces of `output`, followed by zeros if
/// `input` is shorter than a piece.
void write_in_slots(const at::Tensor& output, const at::Tensor& input, int64_t slots);

/// Copies `input` into an entry of a list, which may have gaps. If the sizes differ, the entry is
/// written as one slot (see write_in_slots()).
void write_entry(const at::Tensor& output, const at::Tensor& input);

/// A one-dimensional view of the elements [start, start + count).
at::Tensor piece(const at::Tensor& tensor, int64_t start, int64_t count);

/// A one-dimensional view of number `index` of `chunks` equal chunks.
at::Tensor equal_piece(const at::Tensor& tensor, int64_t chunks, int64_t index);

}  // namespace comm_stub
