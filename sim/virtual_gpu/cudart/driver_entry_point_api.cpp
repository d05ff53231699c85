#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "sim/virtual_gpu/cudart/driver_function.h"
#include "sim/virtual_gpu/cudart/last_error.h"

namespace virtual_gpu {

namespace {

/// A function whose second version has other parameters and came after CUDA 12.0 (cuda.h of 12.5);
/// the others had theirs before.
struct LateVersion {
  std::string_view name;
  unsigned since;
};
constexpr LateVersion kLateVersions[] = {{"cuStreamGetCtx", 12050}};

bool has_second_version(std::string_view name, unsigned cuda_version) {
  return std::none_of(std::begin(kLateVersions), std::end(kLateVersions), [&](const auto& late) {
    return late.name == name && cuda_version < late.since;
  });
}

}  // namespace

void* find_driver_function(const char* name, unsigned cuda_version) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return nullptr;
  void* function = has_second_version(name, cuda_version)
                       ? dlsym(driver, (std::string(name) + "_v2").c_str())
                       : nullptr;
  return function != nullptr ? function : dlsym(driver, name);
}

}  // namespace virtual_gpu

namespace {

cudaError_t give_driver_function(const char* name,
                                 unsigned cuda_version,
                                 void** function,
                                 cudaDriverEntryPointQueryResult* result) {
  *function = virtual_gpu::find_driver_function(name, cuda_version);
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
                                             unsigned cuda_version,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return give_driver_function(name, cuda_version, function, result);
}
#endif

#if CUDART_VERSION < 13000  // its last is CUDA 12's
cudaError_t cudaGetDriverEntryPoint(const char* name,
                                    void** function,
                                    unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  return give_driver_function(name, CUDART_VERSION, function, result);
}
#endif
