#include <algorithm>

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

struct Operand {
  Pointer address;  // null: the matrices are at addresses that lie on the device
  Type type;
  int leading_dim;
  Stride batch_stride = 0;
};

struct Call {
  Handle handle;
  Operation operation_a, operation_b;
  int m, n, k;
  int batch;
  Operand a, b, c;
  Pointer beta;
  Compute compute;
};

int alignment(const Operand& operand, int rows) {
  return virtual_gpu::alignment({.address = operand.address,
                                 .type = operand.type,
                                 .rows = rows,
                                 .leading_dim = operand.leading_dim,
                                 .batch_stride = operand.batch_stride});
}

int alignment(const Call& call) {
  return std::min({alignment(call.a, call.operation_a == CUBLAS_OP_N ? call.m : call.k),
                   alignment(call.b, call.operation_b == CUBLAS_OP_N ? call.k : call.n),
                   alignment(call.c, call.m)});
}

cublasStatus_t run(const Call& call) {
  const bool may_use_tf32 = call.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ||
                            call.handle->math_mode == CUBLAS_TF32_TENSOR_OP_MATH;
  return virtual_gpu::run_product(
      {.m = call.m,
       .n = call.n,
       .k = call.k,
       .batch = call.batch,
       .type = call.a.type,
       .result_type = call.c.type,
       .accumulates = virtual_gpu::is_not_zero(call.beta, call.handle->pointer_mode, call.compute),
       .uses_tf32 = call.a.type == CUDA_R_32F && may_use_tf32,
       .alignment = alignment(call)},
      call.handle->stream);
}

/// Of a function whose name says the type of all matrices.
constexpr Compute compute_of(Type type) {
  const bool is_double = type == CUDA_R_64F || type == CUDA_C_64F;
  return is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
}

}  // namespace

// One product.
#define VIRTUAL_GPU_GEMM(function, type)                    \
  extern "C" cublasStatus_t function(Handle handle,         \
                                     Operation operation_a, \
                                     Operation operation_b, \
                                     int m,                 \
                                     int n,                 \
                                     int k,                 \
                                     Pointer /*alpha*/,     \
                                     Pointer a,             \
                                     int lda,               \
                                     Pointer b,             \
                                     int ldb,               \
                                     Pointer beta,          \
                                     Pointer c,             \
                                     int ldc) {             \
    return run({handle,                                     \
                operation_a,                                \
                operation_b,                                \
                m,                                          \
                n,                                          \
                k,                                          \
                1,                                          \
                {a, type, lda},                             \
                {b, type, ldb},                             \
                {c, type, ldc},                             \
                beta,                                       \
                compute_of(type)});                         \
  }

VIRTUAL_GPU_GEMM(cublasSgemm_v2, CUDA_R_32F)
VIRTUAL_GPU_GEMM(cublasDgemm_v2, CUDA_R_64F)
VIRTUAL_GPU_GEMM(cublasCgemm_v2, CUDA_C_32F)
VIRTUAL_GPU_GEMM(cublasZgemm_v2, CUDA_C_64F)

// Many, of matrices at the addresses in an array.
#define VIRTUAL_GPU_GEMM_BATCHED(function, type)            \
  extern "C" cublasStatus_t function(Handle handle,         \
                                     Operation operation_a, \
                                     Operation operation_b, \
                                     int m,                 \
                                     int n,                 \
                                     int k,                 \
                                     Pointer /*alpha*/,     \
                                     Pointer,               \
                                     int lda,               \
                                     Pointer,               \
                                     int ldb,               \
                                     Pointer beta,          \
                                     Pointer,               \
                                     int ldc,               \
                                     int batch) {           \
    return run({handle,                                     \
                operation_a,                                \
                operation_b,                                \
                m,                                          \
                n,                                          \
                k,                                          \
                batch,                                      \
                {nullptr, type, lda},                       \
                {nullptr, type, ldb},                       \
                {nullptr, type, ldc},                       \
                beta,                                       \
                compute_of(type)});                         \
  }

VIRTUAL_GPU_GEMM_BATCHED(cublasSgemmBatched, CUDA_R_32F)
VIRTUAL_GPU_GEMM_BATCHED(cublasDgemmBatched, CUDA_R_64F)
VIRTUAL_GPU_GEMM_BATCHED(cublasCgemmBatched, CUDA_C_32F)
VIRTUAL_GPU_GEMM_BATCHED(cublasZgemmBatched, CUDA_C_64F)

// Many, of matrices at equal distances.
#define VIRTUAL_GPU_GEMM_STRIDED(function, type)            \
  extern "C" cublasStatus_t function(Handle handle,         \
                                     Operation operation_a, \
                                     Operation operation_b, \
                                     int m,                 \
                                     int n,                 \
                                     int k,                 \
                                     Pointer /*alpha*/,     \
                                     Pointer a,             \
                                     int lda,               \
                                     Stride stride_a,       \
                                     Pointer b,             \
                                     int ldb,               \
                                     Stride stride_b,       \
                                     Pointer beta,          \
                                     Pointer c,             \
                                     int ldc,               \
                                     Stride stride_c,       \
                                     int batch) {           \
    return run({handle,                                     \
                operation_a,                                \
                operation_b,                                \
                m,                                          \
                n,                                          \
                k,                                          \
                batch,                                      \
                {a, type, lda, stride_a},                   \
                {b, type, ldb, stride_b},                   \
                {c, type, ldc, stride_c},                   \
                beta,                                       \
                compute_of(type)});                         \
  }

VIRTUAL_GPU_GEMM_STRIDED(cublasSgemmStridedBatched, CUDA_R_32F)
VIRTUAL_GPU_GEMM_STRIDED(cublasDgemmStridedBatched, CUDA_R_64F)
VIRTUAL_GPU_GEMM_STRIDED(cublasCgemmStridedBatched, CUDA_C_32F)
VIRTUAL_GPU_GEMM_STRIDED(cublasZgemmStridedBatched, CUDA_C_64F)

// The same three with the element types as parameters.
extern "C" cublasStatus_t cublasGemmEx(Handle handle,
                                       Operation operation_a,
                                       Operation operation_b,
                                       int m,
                                       int n,
                                       int k,
                                       Pointer /*alpha*/,
                                       Pointer a,
                                       Type type_a,
                                       int lda,
                                       Pointer b,
                                       Type type_b,
                                       int ldb,
                                       Pointer beta,
                                       Pointer c,
                                       Type type_c,
                                       int ldc,
                                       Compute compute) {
  return run({handle,
              operation_a,
              operation_b,
              m,
              n,
              k,
              1,
              {a, type_a, lda},
              {b, type_b, ldb},
              {c, type_c, ldc},
              beta,
              compute});
}

extern "C" cublasStatus_t cublasSgemmEx(Handle handle,
                                        Operation operation_a,
                                        Operation operation_b,
                                        int m,
                                        int n,
                                        int k,
                                        Pointer /*alpha*/,
                                        Pointer a,
                                        Type type_a,
                                        int lda,
                                        Pointer b,
                                        Type type_b,
                                        int ldb,
                                        Pointer beta,
                                        Pointer c,
                                        Type type_c,
                                        int ldc) {
  return run({handle,
              operation_a,
              operation_b,
              m,
              n,
              k,
              1,
              {a, type_a, lda},
              {b, type_b, ldb},
              {c, type_c, ldc},
              beta,
              CUBLAS_COMPUTE_32F});
}

extern "C" cublasStatus_t cublasGemmBatchedEx(Handle handle,
                                              Operation operation_a,
                                              Operation operation_b,
                                              int m,
                                              int n,
                                              int k,
                                              Pointer /*alpha*/,
                                              Pointer,
                                              Type type_a,
                                              int lda,
                                              Pointer,
                                              Type type_b,
                                              int ldb,
                                              Pointer beta,
                                              Pointer,
                                              Type type_c,
                                              int ldc,
                                              int batch,
                                              Compute compute) {
  return run({handle,
              operation_a,
              operation_b,
              m,
              n,
              k,
              batch,
              {nullptr, type_a, lda},
              {nullptr, type_b, ldb},
              {nullptr, type_c, ldc},
              beta,
              compute});
}

extern "C" cublasStatus_t cublasGemmStridedBatchedEx(Handle handle,
                                                     Operation operation_a,
                                                     Operation operation_b,
                                                     int m,
                                                     int n,
                                                     int k,
                                                     Pointer /*alpha*/,
                                                     Pointer a,
                                                     Type type_a,
                                                     int lda,
                                                     Stride stride_a,
                                                     Pointer b,
                                                     Type type_b,
                                                     int ldb,
                                                     Stride stride_b,
                                                     Pointer beta,
                                                     Pointer c,
                                                     Type type_c,
                                                     int ldc,
                                                     Stride stride_c,
                                                     int batch,
                                                     Compute compute) {
  return run({handle,
              operation_a,
              operation_b,
              m,
              n,
              k,
              batch,
              {a, type_a, lda, stride_a},
              {b, type_b, ldb, stride_b},
              {c, type_c, ldc, stride_c},
              beta,
              compute});
}
