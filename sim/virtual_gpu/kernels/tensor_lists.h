// Kernels that do the same to every tensor of some lists: multi_tensor_apply of NVIDIA's apex
// (csrc/multi_tensor_apply.cuh), which TransformerEngine and DeepSpeed have copied.
#pragma once

#include <cstdint>

#include "sim/virtual_gpu/kernels/kernel_bytes.h"

namespace virtual_gpu {

/// What a launch of multi_tensor_apply_kernel moves. Its arguments are the size of a chunk in
/// elements, a flag, and by value a TensorListMetadata<lists>:
///
///     void* addresses[lists][tensors];
///     int sizes[tensors];                   // elements; int64_t in newer ones
///     unsigned char block_to_tensor[320];
///     int block_to_chunk[320];
///     int start_tensor_this_launch;
///
/// Each thread block handles one chunk of one tensor in every list. How many bytes an element of a
/// list has, and whether it is read, written or both, follows from the functor, which the kernel's
/// name has; of an unknown functor, every list is moved once in its first type. Returns 0 if the
/// name or the arguments have another form.
uint64_t tensor_list_bytes(const ReadableLaunch& launch);

}  // namespace virtual_gpu
