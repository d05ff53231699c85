#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>

#include "sim/virtual_gpu/cudart/last_error.h"

namespace {

/// The function of the driver's stub, in its newest version; null if it has none of that name, or
/// is not loaded.
void* find_driver_function(const std::string& name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return nullptr;
  void* function = dlsym(driver, (name + "_v2").c_str());
  return function != nullptr ? function : dlsym(driver, name.c_str());
}

}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char* name,
                                             void** function,
                                             unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = find_driver_function(name);
  const bool found = *function != nullptr;
  if (result != nullptr) {
    *result = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  // Without a place for the result, an unknown name is an error.
  return found || result != nullptr ? cudaSuccess : virtual_gpu::remember(cudaErrorInvalidValue);
}
