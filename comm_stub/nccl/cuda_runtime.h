#pragma once

#include <cuda_runtime_api.h>

namespace nccl {

/// What the stub calls of the CUDA runtime.
struct CudaRuntime {
  decltype(&cudaFree) free;
  decltype(&cudaGetDevice) get_device;
  decltype(&cudaGetErrorString) error_string;
  decltype(&cudaLaunchHostFunc) launch_host_function;
  decltype(&cudaMalloc) malloc;
  decltype(&cudaMallocHost) malloc_host;
  decltype(&cudaMemcpyAsync) memcpy_async;
  decltype(&cudaMemsetAsync) memset_async;
  decltype(&cudaStreamIsCapturing) is_capturing;
};

/// Of the runtime that the process has loaded, NVIDIA's or the virtual GPU's. The stub is not
/// linked with one: it is preloaded, and would bring the virtual one with it to a real GPU.
const CudaRuntime& cuda();

}  // namespace nccl
