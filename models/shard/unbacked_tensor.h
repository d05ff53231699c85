// Tensors whose memory comes and goes while views, graph nodes and version counters stay, as
// torch.UntypedStorage.resize_ makes it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace models {

/// A contiguous tensor of that shape without memory; not to be read before it is given some.
at::Tensor unbacked_tensor(at::IntArrayRef shape, const at::TensorOptions& options);

/// At least as many bytes as the tensor spans; what they hold is not defined.
void give_memory(const at::Tensor& tensor, int64_t bytes);
void take_memory(const at::Tensor& tensor);

/// All of the tensor's memory in another shape, with a version counter of its own: autograd does
/// not see what is written to it.
at::Tensor memory_as(const at::Tensor& tensor, at::IntArrayRef shape);

}  // namespace models
