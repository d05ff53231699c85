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

inline cublasStatus_t run_product(const onerank_virtual_gpu_product& product, cudaStream_t stream) {
  run_work({.event = {.kind = ONERANK_VIRTUAL_GPU_PRODUCT, .product = &product},
            .gemm = GemmShape{product.m, product.n, product.k, product.batch},
            .effect = {}},
           stream);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace virtual_gpu
