// Tensors whose memory is freed and allocated again while their views, graph nodes and version
// counters stay, as torch.UntypedStorage.resize_ does it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace models {

/// A contiguous tensor of that shape without memory. It must not be read before it is given some.
at::Tensor unbacked_tensor(at::IntArrayRef shape, const at::TensorOptions& options);

/// Gives the tensor `bytes` of memory, at least as many as it spans. Their content is undefined.
/// take_memory() frees the memory again.
void give_memory(const at::Tensor& tensor, int64_t bytes);
void take_memory(const at::Tensor& tensor);
void take_memory(const c10::Storage& storage);

/// Gives the memory of `from` to `to`, too, and with it to all views of `to`.
void share_memory(const c10::Storage& to, const c10::Storage& from);

/// All of the tensor's memory as a tensor of another shape, with its own version counter, so that
/// autograd does not see writes to it.
at::Tensor memory_as(const at::Tensor& tensor, at::IntArrayRef shape);

}  // namespace models
