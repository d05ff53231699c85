#include <cuda.h>
#include <cuda_runtime_api.h>

// The runtime looks functions up by the same rule.
CUresult cuGetProcAddress(const char* name,
                          void** function,
                          int version,
                          cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion(name, function, version, flags, &result);
  const bool found = result == cudaDriverEntryPointSuccess;
  if (status != nullptr) {
    *status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return found || status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
