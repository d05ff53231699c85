#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace virtual_gpu {

/// What a copy does where device memory holds nothing: the host reads zeros from the device, writes
/// to the device vanish, and host to host is a true copy. All copies of the runtime come through
/// here, so this is the place to remember small values that a program writes and reads back.
void copy(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind);

/// Fills host memory; what is written to a device vanishes.
void fill(void* destination, int value, size_t bytes);

}  // namespace virtual_gpu
