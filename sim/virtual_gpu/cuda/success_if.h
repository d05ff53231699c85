#pragma once

#include <cuda.h>

namespace virtual_gpu {

/// What a function of the driver returns whose arguments may be wrong.
inline CUresult success_if(bool condition) {
  return condition ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace virtual_gpu
