#include "sim/virtual_gpu/cublas/product.h"

/// Every matrix product of cuBLAS: counted by its shape and told, nothing else. Parameters after
/// the last one that is needed are left out, which the C calling convention allows.
namespace {

using Handle = cublasHandle_t;
using Operation = cublasOperation_t;
using Pointer = const void*;  // to a scalar, a matrix, or an array of pointers to matrices
using Type = cudaDataType;
using Compute = cublasComputeType_t;
using Stride = long long;

struct Call {
  Handle handle;
  int m, n, k;
  int batch;
  Pointer beta;
  Type type;
  Type result_type;
  Compute compute;
};

cublasStatus_t run(const Call& call) {
  const bool may_use_tf32 = call.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ||
                            call.handle->math_mode == CUBLAS_TF32_TENSOR_OP_MATH;
  return virtual_gpu::run_product(
      {.m = call.m,
       .n = call.n,
       .k = call.k,
       .batch = call.batch,
       .type = call.type,
       .result_type = call.result_type,
       .accumulates = virtual_gpu::is_not_zero(call.beta, call.handle->pointer_mode, call.compute),
       .uses_tf32 = call.type == CUDA_R_32F && may_use_tf32},
      call.handle->stream);
}

/// A function whose name says the type of all matrices.
cublasStatus_t run(Handle handle, int m, int n, int k, int batch, Pointer beta, Type type) {
  const bool is_double = type == CUDA_R_64F || type == CUDA_C_64F;
  return run({handle,
              m,
              n,
              k,
              batch,
              beta,
              type,
              type,
              is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F});
}

}  // namespace

// One product.
#define VIRTUAL_GPU_GEMM(function, type)             \
  extern "C" cublasStatus_t function(Handle handle,  \
                                     Operation,      \
                                     Operation,      \
                                     int m,          \
                                     int n,          \
                                     int k,          \
                                     Pointer,        \
                                     Pointer,        \
                                     int,            \
                                     Pointer,        \
                                     int,            \
                                     Pointer beta) { \
    return run(handle, m, n, k, 1, beta, type);      \
  }

VIRTUAL_GPU_GEMM(cublasSgemm_v2, CUDA_R_32F)
VIRTUAL_GPU_GEMM(cublasDgemm_v2, CUDA_R_64F)
VIRTUAL_GPU_GEMM(cublasCgemm_v2, CUDA_C_32F)
VIRTUAL_GPU_GEMM(cublasZgemm_v2, CUDA_C_64F)

// Many, of matrices at the addresses in an array.
#define VIRTUAL_GPU_GEMM_BATCHED(function, type)    \
  extern "C" cublasStatus_t function(Handle handle, \
                                     Operation,     \
                                     Operation,     \
                                     int m,         \
                                     int n,         \
                                     int k,         \
                                     Pointer,       \
                                     Pointer,       \
                                     int,           \
                                     Pointer,       \
                                     int,           \
                                     Pointer beta,  \
                                     Pointer,       \
                                     int,           \
                                     int batch) {   \
    return run(handle, m, n, k, batch, beta, type); \
  }

VIRTUAL_GPU_GEMM_BATCHED(cublasSgemmBatched, CUDA_R_32F)
VIRTUAL_GPU_GEMM_BATCHED(cublasDgemmBatched, CUDA_R_64F)
VIRTUAL_GPU_GEMM_BATCHED(cublasCgemmBatched, CUDA_C_32F)
VIRTUAL_GPU_GEMM_BATCHED(cublasZgemmBatched, CUDA_C_64F)

// Many, of matrices at equal distances.
#define VIRTUAL_GPU_GEMM_STRIDED(function, type)    \
  extern "C" cublasStatus_t function(Handle handle, \
                                     Operation,     \
                                     Operation,     \
                                     int m,         \
                                     int n,         \
                                     int k,         \
                                     Pointer,       \
                                     Pointer,       \
                                     int,           \
                                     Stride,        \
                                     Pointer,       \
                                     int,           \
                                     Stride,        \
                                     Pointer beta,  \
                                     Pointer,       \
                                     int,           \
                                     Stride,        \
                                     int batch) {   \
    return run(handle, m, n, k, batch, beta, type); \
  }

VIRTUAL_GPU_GEMM_STRIDED(cublasSgemmStridedBatched, CUDA_R_32F)
VIRTUAL_GPU_GEMM_STRIDED(cublasDgemmStridedBatched, CUDA_R_64F)
VIRTUAL_GPU_GEMM_STRIDED(cublasCgemmStridedBatched, CUDA_C_32F)
VIRTUAL_GPU_GEMM_STRIDED(cublasZgemmStridedBatched, CUDA_C_64F)

// The same three with the element types as parameters.
extern "C" cublasStatus_t cublasGemmEx(Handle handle,
                                       Operation,
                                       Operation,
                                       int m,
                                       int n,
                                       int k,
                                       Pointer /*alpha*/,
                                       Pointer /*a*/,
                                       Type type,
                                       int,
                                       Pointer /*b*/,
                                       Type,
                                       int,
                                       Pointer beta,
                                       Pointer /*c*/,
                                       Type result_type,
                                       int,
                                       Compute compute) {
  return run({handle, m, n, k, 1, beta, type, result_type, compute});
}

extern "C" cublasStatus_t cublasSgemmEx(Handle handle,
                                        Operation,
                                        Operation,
                                        int m,
                                        int n,
                                        int k,
                                        Pointer /*alpha*/,
                                        Pointer /*a*/,
                                        Type type,
                                        int,
                                        Pointer /*b*/,
                                        Type,
                                        int,
                                        Pointer beta,
                                        Pointer /*c*/,
                                        Type result_type) {
  return run({handle, m, n, k, 1, beta, type, result_type, CUBLAS_COMPUTE_32F});
}

extern "C" cublasStatus_t cublasGemmBatchedEx(Handle handle,
                                              Operation,
                                              Operation,
                                              int m,
                                              int n,
                                              int k,
                                              Pointer /*alpha*/,
                                              Pointer /*a*/,
                                              Type type,
                                              int,
                                              Pointer /*b*/,
                                              Type,
                                              int,
                                              Pointer beta,
                                              Pointer /*c*/,
                                              Type result_type,
                                              int,
                                              int batch,
                                              Compute compute) {
  return run({handle, m, n, k, batch, beta, type, result_type, compute});
}

extern "C" cublasStatus_t cublasGemmStridedBatchedEx(Handle handle,
                                                     Operation,
                                                     Operation,
                                                     int m,
                                                     int n,
                                                     int k,
                                                     Pointer /*alpha*/,
                                                     Pointer /*a*/,
                                                     Type type,
                                                     int,
                                                     Stride,
                                                     Pointer /*b*/,
                                                     Type,
                                                     int,
                                                     Stride,
                                                     Pointer beta,
                                                     Pointer /*c*/,
                                                     Type result_type,
                                                     int,
                                                     Stride,
                                                     int batch,
                                                     Compute compute) {
  return run({handle, m, n, k, batch, beta, type, result_type, compute});
}
