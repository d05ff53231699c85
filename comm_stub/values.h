// What a call writes. Tensors are dense without gaps unless said otherwise, and elements go in
// memory order, as the network moves them, whatever the strides.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace comm_stub {

/// What a root or a sender that is not there would have sent: zeros.
void write_unknown(const at::Tensor& output);

/// Into each of `slots` equal pieces of `output`: the start of `input`, zeros where that is
/// shorter.
void write_in_slots(const at::Tensor& output, const at::Tensor& input, int64_t slots);

/// An entry of a list, which may have gaps: `output` := `input`; with other sizes, as one slot.
void write_entry(const at::Tensor& output, const at::Tensor& input);

/// The elements [start, start + count), as a one-dimensional view.
at::Tensor piece(const at::Tensor& tensor, int64_t start, int64_t count);

/// Chunk `index` of `chunks` equal ones, as a one-dimensional view.
at::Tensor equal_piece(const at::Tensor& tensor, int64_t chunks, int64_t index);

}  // namespace comm_stub
