#include "sim/virtual_gpu/cublas/cublas_types.h"
#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/stream.h"

/// Every matrix product of cuBLAS: counted by its shape, nothing else. Parameters after the last
/// one that is needed are left out, which the C calling convention allows.
namespace {

cublasStatus_t count(cublasHandle_t handle, int64_t m, int64_t n, int64_t k, int64_t batch) {
  virtual_gpu::add_work(handle->stream);
  virtual_gpu::work_log().count_gemm({m, n, k, batch});
  return CUBLAS_STATUS_SUCCESS;
}

using Handle = cublasHandle_t;
using Operation = cublasOperation_t;
using Pointer = const void*;  // to a scalar, a matrix, or an array of pointers to matrices
using Type = cudaDataType;
using Stride = long long;

}  // namespace

// One product.
#define VIRTUAL_GPU_GEMM(function)                                                               \
  extern "C" cublasStatus_t function(Handle handle, Operation, Operation, int m, int n, int k) { \
    return count(handle, m, n, k, 1);                                                            \
  }

VIRTUAL_GPU_GEMM(cublasSgemm_v2)
VIRTUAL_GPU_GEMM(cublasDgemm_v2)
VIRTUAL_GPU_GEMM(cublasCgemm_v2)
VIRTUAL_GPU_GEMM(cublasZgemm_v2)
VIRTUAL_GPU_GEMM(cublasSgemmEx)
VIRTUAL_GPU_GEMM(cublasGemmEx)

// Many, of matrices at the addresses in an array.
#define VIRTUAL_GPU_GEMM_BATCHED(function)              \
  extern "C" cublasStatus_t function(Handle handle,     \
                                     Operation,         \
                                     Operation,         \
                                     int m,             \
                                     int n,             \
                                     int k,             \
                                     Pointer /*alpha*/, \
                                     Pointer /*a*/,     \
                                     int,               \
                                     Pointer /*b*/,     \
                                     int,               \
                                     Pointer /*beta*/,  \
                                     Pointer /*c*/,     \
                                     int,               \
                                     int batch) {       \
    return count(handle, m, n, k, batch);               \
  }

VIRTUAL_GPU_GEMM_BATCHED(cublasSgemmBatched)
VIRTUAL_GPU_GEMM_BATCHED(cublasDgemmBatched)
VIRTUAL_GPU_GEMM_BATCHED(cublasCgemmBatched)
VIRTUAL_GPU_GEMM_BATCHED(cublasZgemmBatched)

// Many, of matrices at equal distances.
#define VIRTUAL_GPU_GEMM_STRIDED(function)              \
  extern "C" cublasStatus_t function(Handle handle,     \
                                     Operation,         \
                                     Operation,         \
                                     int m,             \
                                     int n,             \
                                     int k,             \
                                     Pointer /*alpha*/, \
                                     Pointer /*a*/,     \
                                     int,               \
                                     Stride,            \
                                     Pointer /*b*/,     \
                                     int,               \
                                     Stride,            \
                                     Pointer /*beta*/,  \
                                     Pointer /*c*/,     \
                                     int,               \
                                     Stride,            \
                                     int batch) {       \
    return count(handle, m, n, k, batch);               \
  }

VIRTUAL_GPU_GEMM_STRIDED(cublasSgemmStridedBatched)
VIRTUAL_GPU_GEMM_STRIDED(cublasDgemmStridedBatched)
VIRTUAL_GPU_GEMM_STRIDED(cublasCgemmStridedBatched)
VIRTUAL_GPU_GEMM_STRIDED(cublasZgemmStridedBatched)

// The same two with the element types as parameters.
extern "C" cublasStatus_t cublasGemmBatchedEx(Handle handle,
                                              Operation,
                                              Operation,
                                              int m,
                                              int n,
                                              int k,
                                              Pointer /*alpha*/,
                                              Pointer /*a*/,
                                              Type,
                                              int,
                                              Pointer /*b*/,
                                              Type,
                                              int,
                                              Pointer /*beta*/,
                                              Pointer /*c*/,
                                              Type,
                                              int,
                                              int batch) {
  return count(handle, m, n, k, batch);
}

extern "C" cublasStatus_t cublasGemmStridedBatchedEx(Handle handle,
                                                     Operation,
                                                     Operation,
                                                     int m,
                                                     int n,
                                                     int k,
                                                     Pointer /*alpha*/,
                                                     Pointer /*a*/,
                                                     Type,
                                                     int,
                                                     Stride,
                                                     Pointer /*b*/,
                                                     Type,
                                                     int,
                                                     Stride,
                                                     Pointer /*beta*/,
                                                     Pointer /*c*/,
                                                     Type,
                                                     int,
                                                     Stride,
                                                     int batch) {
  return count(handle, m, n, k, batch);
}
