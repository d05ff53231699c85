#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>

#include "sim/virtual_gpu/cudart/driver_function.h"
#include "sim/virtual_gpu/cudart/last_error.h"

namespace virtual_gpu {

void* find_driver_function(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return nullptr;
  void* function = dlsym(driver, (std::string(name) + "_v2").c_str());
  return function != nullptr ? function : dlsym(driver, name);
}

}  // namespace virtual_gpu

namespace {

cudaError_t give_driver_function(const char* name,
                                 void** function,
                                 cudaDriverEntryPointQueryResult* result) {
  *function = virtual_gpu::find_driver_function(name);
  const bool found = *function != nullptr;
  if (result != nullptr) {
    *result = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  // Without a place for the result, an unknown name is an error.
  return found || result != nullptr ? cudaSuccess : virtual_gpu::remember(cudaErrorInvalidValue);
}

}  // namespace

#if CUDART_VERSION >= 12050  // its first
cudaError_t cudaGetDriverEntryPointByVersion(const char* name,
                                             void** function,
                                             unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return give_driver_function(name, function, result);
}
#endif

#if CUDART_VERSION < 13000  // its last is CUDA 12's
cudaError_t cudaGetDriverEntryPoint(const char* name,
                                    void** function,
                                    unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  return give_driver_function(name, function, result);
}
#endif
