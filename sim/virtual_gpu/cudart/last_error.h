#pragma once

#include <cuda_runtime_api.h>

namespace virtual_gpu {

/// Returns `error` and keeps it for cudaGetLastError() of this thread, unless it is cudaSuccess.
cudaError_t remember(cudaError_t error);

}  // namespace virtual_gpu
