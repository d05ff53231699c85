#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace virtual_gpu {

/// The real kind of a copy that was asked for as cudaMemcpyDefault; any other kind is returned
/// unchanged.
cudaMemcpyKind kind_of(cudaMemcpyKind asked, const void* destination, const void* source);

/// Does a copy. Device memory holds only what its shadow remembers, so the host reads zeros where
/// the shadow knows nothing. Host to host is a real copy. All copies of the runtime and of the
/// driver go through here.
void copy(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind);

/// Until the next call, reads of this thread of at most eight unknown bytes give this number; null
/// means zeros. Returns the pointer that was set before.
const int64_t* answer_unknown_reads_here(const int64_t* number);

/// Fills host memory, or the shadow of a device's.
void fill(void* destination, int value, size_t bytes);

}  // namespace virtual_gpu
