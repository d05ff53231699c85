#include <cuda.h>

#include "sim/virtual_gpu/cudart/driver_function.h"

// The runtime looks functions up by the same rule.
CUresult cuGetProcAddress(const char* name,
                          void** function,
                          int version,
                          cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  *function = virtual_gpu::find_driver_function(name, static_cast<unsigned>(version));
  const bool found = *function != nullptr;
  if (status != nullptr) {
    *status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return found || status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
