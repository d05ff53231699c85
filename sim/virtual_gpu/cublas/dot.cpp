#include "sim/virtual_gpu/cublas/cublas_types.h"
#include "sim/virtual_gpu/generated_stub.h"

/// Dot products: harmless while the result stays on the device, refused when the host would read
/// it.
namespace {

cublasStatus_t dot(cublasHandle_t handle, const char* function) {
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) return CUBLAS_STATUS_SUCCESS;
  virtual_gpu::report_refusal(function, "CUBLAS_STATUS_NOT_SUPPORTED (15)");
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace

#define VIRTUAL_GPU_DOT(function)                             \
  extern "C" cublasStatus_t function(cublasHandle_t handle) { \
    return dot(handle, #function "() with a host result");    \
  }

VIRTUAL_GPU_DOT(cublasSdot_v2)
VIRTUAL_GPU_DOT(cublasDdot_v2)
VIRTUAL_GPU_DOT(cublasCdotu_v2)
VIRTUAL_GPU_DOT(cublasCdotc_v2)
VIRTUAL_GPU_DOT(cublasZdotu_v2)
VIRTUAL_GPU_DOT(cublasZdotc_v2)
VIRTUAL_GPU_DOT(cublasDotEx)
