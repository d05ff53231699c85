#pragma once

#include <cstddef>
#include <cstdint>

/// The few types of cuBLAS and cuBLASLt that the stubs need. They are copied here because the
/// headers come in a package of hundreds of megabytes; names and numbers are those of the cuBLAS
/// documentation.

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
};

enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
using cublasMath_t = int;
using cudaDataType = int;
using cublasComputeType_t = int;
inline constexpr cublasMath_t CUBLAS_TF32_TENSOR_OP_MATH = 3;
inline constexpr cublasComputeType_t CUBLAS_COMPUTE_16F = 64;
inline constexpr cublasComputeType_t CUBLAS_COMPUTE_16F_PEDANTIC = 65;
inline constexpr cublasComputeType_t CUBLAS_COMPUTE_32F = 68;
inline constexpr cublasComputeType_t CUBLAS_COMPUTE_64F = 70;
inline constexpr cublasComputeType_t CUBLAS_COMPUTE_64F_PEDANTIC = 71;
inline constexpr cublasComputeType_t CUBLAS_COMPUTE_32F_FAST_TF32 = 77;
inline constexpr cudaDataType CUDA_R_32F = 0;
inline constexpr cudaDataType CUDA_R_64F = 1;
inline constexpr cudaDataType CUDA_R_16F = 2;
inline constexpr cudaDataType CUDA_C_32F = 4;
inline constexpr cudaDataType CUDA_C_64F = 5;
inline constexpr cudaDataType CUDA_R_32I = 10;
inline constexpr cudaDataType CUDA_R_16BF = 14;
inline constexpr cudaDataType CUDA_R_4F_E2M1 = 33;

struct CUstream_st;
using cudaStream_t = CUstream_st*;

/// The handle holds the settings that a program can read back.
struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasMath_t math_mode = 0;  // CUBLAS_DEFAULT_MATH
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
};
using cublasHandle_t = cublasContext*;
