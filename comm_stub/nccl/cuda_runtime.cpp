#include "comm_stub/nccl/cuda_runtime.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace nccl {
namespace {

template <class Function>
void find(void* runtime, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(runtime == nullptr ? RTLD_DEFAULT : runtime, name));
  if (function != nullptr) return;
  std::fprintf(stderr, "onerank: error: the stub of NCCL finds no %s in this process\n", name);
  std::abort();
}

CudaRuntime find_runtime() {
  // Python loads torch's libraries where a search of all libraries does not see them.
  void* const runtime = dlopen(ONERANK_CUDART_SONAME, RTLD_LAZY | RTLD_NOLOAD);
  CudaRuntime found{};
  find(runtime, "cudaFree", found.free);
  find(runtime, "cudaGetDevice", found.get_device);
  find(runtime, "cudaGetErrorString", found.error_string);
  find(runtime, "cudaLaunchHostFunc", found.launch_host_function);
  find(runtime, "cudaMalloc", found.malloc);
  find(runtime, "cudaMallocHost", found.malloc_host);
  find(runtime, "cudaMemcpyAsync", found.memcpy_async);
  find(runtime, "cudaMemsetAsync", found.memset_async);
  find(runtime, "cudaStreamIsCapturing", found.is_capturing);
  return found;
}

}  // namespace

const CudaRuntime& cuda() {
  static const CudaRuntime runtime = find_runtime();
  return runtime;
}

}  // namespace nccl
