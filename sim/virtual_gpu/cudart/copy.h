#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace virtual_gpu {

/// The kind of a copy that was asked for as cudaMemcpyDefault; any other stays.
cudaMemcpyKind kind_of(cudaMemcpyKind asked, const void* destination, const void* source);

/// What a copy does where device memory holds only what its shadow remembers: the host reads zeros
/// where that knows nothing, and host to host is a true copy. All copies of the runtime and of the
/// driver come through here.
void copy(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind);

/// Until the next call, this thread's reads of at most eight bytes that nothing is known of give
/// this number; null: zeros. Returns what was there before.
const int64_t* answer_unknown_reads_here(const int64_t* number);

/// Fills host memory, or the shadow of a device's.
void fill(void* destination, int value, size_t bytes);

}  // namespace virtual_gpu
