#pragma once

#include <cuda_runtime_api.h>

namespace nccl {

/// The functions of the CUDA runtime that the stub calls.
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

/// The functions of the runtime that the process has loaded, NVIDIA's or the virtual GPU's. The
/// stub is not linked with a runtime, because it is preloaded and would then load the virtual
/// runtime even on a real GPU.
const CudaRuntime& cuda();

}  // namespace nccl
