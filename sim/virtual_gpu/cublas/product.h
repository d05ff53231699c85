#pragma once

#include <algorithm>

#include "sim/virtual_gpu/cublas/cublas_types.h"
#include "sim/virtual_gpu/cudart/capture.h"

namespace virtual_gpu {

/// Whether a factor on the host is known not to be zero: it has as many bytes as the type that
/// products of the compute type are scaled in (for complex results twice as many, of which the
/// first half counts).
inline bool is_not_zero(const void* factor,
                        cublasPointerMode_t pointer_mode,
                        cublasComputeType_t compute) {
  if (factor == nullptr || pointer_mode != CUBLAS_POINTER_MODE_HOST) return false;
  const bool is_half = compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC;
  const bool is_double = compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
  const auto* const bytes = static_cast<const char*>(factor);
  const int count = is_half ? 2 : is_double ? 8 : 4;
  return std::any_of(bytes, bytes + count, [](char byte) { return byte != 0; });
}

/// A matrix as it lies in memory, column after column, or a batch of them.
struct StoredMatrix {
  const void* address;  ///< null: not known
  cudaDataType type;
  int64_t rows;              ///< elements that lie one behind the other
  int64_t leading_dim;       ///< from column to column, in elements
  int64_t batch_stride = 0;  ///< from matrix to matrix, in elements
};

constexpr int64_t bits_of_element(cudaDataType type) {
  switch (type) {
    case CUDA_C_64F:
      return 128;
    case CUDA_R_64F:
    case CUDA_C_32F:
      return 64;
    case CUDA_R_32F:
    case CUDA_R_32I:
      return 32;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 16;
    case CUDA_R_4F_E2M1:
      return 4;
    default:
      return 8;
  }
}

/// Bytes, at most 16, of which its rows, the distances and the address are multiples. Tensor cores
/// load it at full rate only if these are 16 (cuBLAS documentation, "Tensor Core Usage").
inline int alignment(const StoredMatrix& matrix) {
  constexpr uint64_t kByteBits = 8, kVectorBits = 16 * kByteBits;
  const auto elements =
      static_cast<uint64_t>(matrix.rows | matrix.leading_dim | matrix.batch_stride);
  const auto element_bits = static_cast<uint64_t>(bits_of_element(matrix.type));
  const uint64_t bits = elements * element_bits | kVectorBits |
                        reinterpret_cast<uintptr_t>(matrix.address) * kByteBits;
  return static_cast<int>((bits & -bits) / kByteBits);
}

inline cublasStatus_t run_product(const onerank_virtual_gpu_product& product, cudaStream_t stream) {
  run_work({.event = {.kind = ONERANK_VIRTUAL_GPU_PRODUCT, .product = &product},
            .gemm = GemmShape{product.m, product.n, product.k, product.batch},
            .effect = {}},
           stream);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace virtual_gpu
