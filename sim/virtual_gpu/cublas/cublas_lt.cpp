#include <cuda.h>

#include <algorithm>
#include <cstring>

#include "sim/virtual_gpu/cublas/product.h"

/// cuBLASLt describes a product in pieces; the stub keeps those that its time depends on.
namespace {

enum cublasLtMatmulDescAttributes_t {
  CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,
  CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_A_SCALE_MODE = 31,
};
enum cublasLtMatrixLayoutAttribute_t {
  CUBLASLT_MATRIX_LAYOUT_TYPE = 0,
  CUBLASLT_MATRIX_LAYOUT_ROWS = 2,
  CUBLASLT_MATRIX_LAYOUT_COLS = 3,
  CUBLASLT_MATRIX_LAYOUT_LD = 4,
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6,
};

struct MatmulDescription {
  cublasComputeType_t compute;
  cublasOperation_t operation_a = CUBLAS_OP_N;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  int32_t scale_mode = 0;
};

struct MatrixLayout {
  cudaDataType type;
  uint64_t rows;
  uint64_t columns;
  int64_t leading_dim;
  int32_t batch = 1;
  int64_t batch_stride = 0;
};

int alignment(const MatrixLayout& layout, const void* address) {
  return virtual_gpu::alignment({.address = address,
                                 .type = layout.type,
                                 .rows = static_cast<int64_t>(layout.rows),
                                 .leading_dim = layout.leading_dim,
                                 .batch_stride = layout.batch_stride});
}

struct HeuristicResult {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  cublasStatus_t state;
  float waves;
  int reserved[4];
};

struct Preference {};

/// What an attribute setter was given, if it has the size of the field.
template <typename Field>
cublasStatus_t assign(Field& field, const void* value, size_t bytes) {
  if (bytes != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return CUDA_VERSION / 1000 * 10000; }

cublasStatus_t cublasLtCreate(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(MatmulDescription** description,
                                        cublasComputeType_t compute,
                                        cudaDataType) {
  *description = new MatmulDescription{compute};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(MatmulDescription* description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}

// The other attributes (epilogue, scales, pointers) are taken as they come.
cublasStatus_t cublasLtMatmulDescSetAttribute(MatmulDescription* description,
                                              int attribute,
                                              const void* value,
                                              size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      return assign(description->compute, value, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return assign(description->pointer_mode, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return assign(description->operation_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
      return assign(description->scale_mode, value, bytes);
    default:
      return CUBLAS_STATUS_SUCCESS;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(MatrixLayout** layout,
                                          cudaDataType type,
                                          uint64_t rows,
                                          uint64_t columns,
                                          int64_t leading_dim) {
  *layout = new MatrixLayout{type, rows, columns, leading_dim};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(MatrixLayout* layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(MatrixLayout* layout,
                                                int attribute,
                                                const void* value,
                                                size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return assign(layout->type, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return assign(layout->rows, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return assign(layout->columns, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return assign(layout->leading_dim, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return assign(layout->batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return assign(layout->batch_stride, value, bytes);
    default:
      return CUBLAS_STATUS_SUCCESS;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(Preference** preference) {
  *preference = new Preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(Preference* preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

// One algorithm, which needs no workspace: PyTorch allocates its own, of a fixed size, before it
// asks.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasHandle_t,
                                              MatmulDescription*,
                                              MatrixLayout*,
                                              MatrixLayout*,
                                              MatrixLayout*,
                                              MatrixLayout*,
                                              Preference*,
                                              int requested,
                                              HeuristicResult* results,
                                              int* returned) {
  if (requested < 1) return CUBLAS_STATUS_INVALID_VALUE;
  std::memset(&results[0], 0, sizeof results[0]);
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasHandle_t,
                              MatmulDescription* description,
                              const void* /*alpha*/,
                              const void* address_a,
                              MatrixLayout* a,
                              const void* address_b,
                              MatrixLayout* b,
                              const void* beta,
                              const void*,
                              MatrixLayout*,
                              void* address_d,
                              MatrixLayout* d,
                              const void*,
                              void*,
                              size_t,
                              cudaStream_t stream) {
  const uint64_t k = description->operation_a == CUBLAS_OP_N ? a->columns : a->rows;
  return virtual_gpu::run_product(
      {.m = static_cast<int64_t>(d->rows),
       .n = static_cast<int64_t>(d->columns),
       .k = static_cast<int64_t>(k),
       .batch = d->batch,
       .type = a->type,
       .result_type = d->type,
       .accumulates =
           virtual_gpu::is_not_zero(beta, description->pointer_mode, description->compute),
       .uses_tf32 = a->type == CUDA_R_32F && description->compute == CUBLAS_COMPUTE_32F_FAST_TF32,
       .scale_mode = description->scale_mode,
       .alignment = std::min(
           {alignment(*a, address_a), alignment(*b, address_b), alignment(*d, address_d)})},
      stream);
}
}
