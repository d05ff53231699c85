#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace virtual_gpu {

/// What a copy does where device memory holds only what its shadow remembers: the host reads zeros
/// where that knows nothing, and host to host is a true copy. All copies of the runtime and of the
/// driver come through here.
void copy(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind);

/// Fills host memory, or the shadow of a device's.
void fill(void* destination, int value, size_t bytes);

}  // namespace virtual_gpu
