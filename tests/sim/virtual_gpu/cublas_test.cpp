#include "sim/virtual_gpu/cublas/cublas_types.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "sim/virtual_gpu/control.h"

extern "C" {
cublasStatus_t cublasCreate_v2(cublasHandle_t*);
cublasStatus_t cublasDestroy_v2(cublasHandle_t);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t);
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t, cublasPointerMode_t*);
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t);
cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t*);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t,
                                          cublasOperation_t,
                                          cublasOperation_t,
                                          int,
                                          int,
                                          int,
                                          const void*,
                                          const void*,
                                          cudaDataType,
                                          int,
                                          long long,
                                          const void*,
                                          cudaDataType,
                                          int,
                                          long long,
                                          const void*,
                                          void*,
                                          cudaDataType,
                                          int,
                                          long long,
                                          int,
                                          cublasComputeType_t,
                                          int);
cublasStatus_t cublasSdot_v2(cublasHandle_t, int, const float*, int, const float*, int, float*);
cublasStatus_t cublasLtMatrixLayoutCreate(void**, cudaDataType, uint64_t, uint64_t, int64_t);
cublasStatus_t cublasLtMatrixLayoutSetAttribute(void*, int, const void*, size_t);
cublasStatus_t cublasLtMatrixLayoutDestroy(void*);
cublasStatus_t cublasLtMatmulDescDestroy(void*);
cublasStatus_t cublasLtMatmulDescCreate(void**, cublasComputeType_t, cudaDataType);
cublasStatus_t cublasLtMatmulDescSetAttribute(void*, int, const void*, size_t);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    void*, void*, void*, void*, void*, void*, void*, int, void*, int*);
cublasStatus_t cublasLtMatmul(void*,
                              void*,
                              const void*,
                              const void*,
                              void*,
                              const void*,
                              void*,
                              const void*,
                              const void*,
                              void*,
                              void*,
                              void*,
                              const void*,
                              void*,
                              size_t,
                              cudaStream_t);
}

namespace {

using Shape = std::tuple<int64_t, int64_t, int64_t, int64_t>;  // m, n, k, batch

std::map<Shape, uint64_t> gemms() {
  std::map<Shape, uint64_t> counts;
  onerank_virtual_gpu_visit_gemms(
      [](const onerank_virtual_gpu_gemm* gemm, void* context) {
        (*static_cast<std::map<Shape, uint64_t>*>(
            context))[{gemm->m, gemm->n, gemm->k, gemm->batch}] = gemm->count;
      },
      &counts);
  return counts;
}

class Cublas : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cublasCreate_v2(&handle_), CUBLAS_STATUS_SUCCESS); }
  void TearDown() override { EXPECT_EQ(cublasDestroy_v2(handle_), CUBLAS_STATUS_SUCCESS); }

  cublasHandle_t handle_ = nullptr;
};

TEST_F(Cublas, CountsProductsByShapeAndBatch) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cublasGemmStridedBatchedEx(handle_,
                                         CUBLAS_OP_T,
                                         CUBLAS_OP_N,
                                         11,
                                         12,
                                         13,
                                         nullptr,
                                         nullptr,
                                         0,
                                         1,
                                         1,
                                         nullptr,
                                         0,
                                         1,
                                         1,
                                         nullptr,
                                         nullptr,
                                         0,
                                         1,
                                         1,
                                         14,
                                         0,
                                         0),
              CUBLAS_STATUS_SUCCESS);
  }
  EXPECT_EQ(gemms().at({11, 12, 13, 14}), 2u);
}

/// A product in bf16: how both matrices are used, m, n and k, and the leading dims.
struct Bf16Product {
  cublasOperation_t operation_a, operation_b;
  int m, n, k;
  int lda, ldb, ldc;
  uintptr_t a = 0;
};

int alignment(cublasHandle_t handle, const Bf16Product& product) {
  static int told;
  told = -1;
  onerank_virtual_gpu_set_event_sink(
      [](const onerank_virtual_gpu_event* event, void*) { told = event->product->alignment; },
      nullptr);
  EXPECT_EQ(cublasGemmStridedBatchedEx(handle,
                                       product.operation_a,
                                       product.operation_b,
                                       product.m,
                                       product.n,
                                       product.k,
                                       nullptr,
                                       reinterpret_cast<const void*>(product.a),
                                       CUDA_R_16BF,
                                       product.lda,
                                       0,
                                       nullptr,
                                       CUDA_R_16BF,
                                       product.ldb,
                                       0,
                                       nullptr,
                                       nullptr,
                                       CUDA_R_16BF,
                                       product.ldc,
                                       0,
                                       1,
                                       CUBLAS_COMPUTE_32F,
                                       0),
            CUBLAS_STATUS_SUCCESS);
  onerank_virtual_gpu_set_event_sink([](const onerank_virtual_gpu_event*, void*) {}, nullptr);
  EXPECT_NE(told, -1);
  return told;
}

// cuBLAS documentation, "Tensor Core Usage". 4,095 tokens of a linear layer of 4,096 by 8,192 are n
// in forward and in the gradient of the input, k in that of the weight.
TEST_F(Cublas, TellsOfHowManyBytesRowsDistancesAndAddressesAreMultiples) {
  constexpr auto kN = CUBLAS_OP_N, kT = CUBLAS_OP_T;
  const Bf16Product forward = {kT, kN, 8192, 4095, 4096, 4096, 4096, 8192};
  EXPECT_EQ(alignment(handle_, forward), 16);
  EXPECT_EQ(alignment(handle_, {kN, kN, 4096, 4095, 8192, 4096, 8192, 4096}), 16);
  EXPECT_EQ(alignment(handle_, {kN, kT, 4096, 8192, 4095, 4096, 8192, 4096}), 16);
  EXPECT_EQ(alignment(handle_, {kT, kN, 8191, 4096, 4096, 4096, 4096, 8191}), 2) << "result";
  EXPECT_EQ(alignment(handle_, {kT, kN, 8192, 4096, 4095, 4095, 4095, 8192}), 2) << "both";
  Bf16Product view = forward;
  view.ldb = 4100;
  EXPECT_EQ(alignment(handle_, view), 8) << "distance";
  view = forward;
  view.a = 2;
  EXPECT_EQ(alignment(handle_, view), 2) << "address";
}

TEST_F(Cublas, RemembersItsModes) {
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_DEVICE;
  EXPECT_EQ(cublasGetPointerMode_v2(handle_, &pointer_mode), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(pointer_mode, CUBLAS_POINTER_MODE_HOST);
  EXPECT_EQ(cublasSetPointerMode_v2(handle_, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetPointerMode_v2(handle_, &pointer_mode), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(pointer_mode, CUBLAS_POINTER_MODE_DEVICE);
  cublasMath_t math_mode = -1;
  EXPECT_EQ(cublasSetMathMode(handle_, 3), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetMathMode(handle_, &math_mode), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(math_mode, 3);
}

TEST_F(Cublas, RefusesADotProductThatTheHostWouldRead) {
  float result = 5;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cublasSdot_v2(handle_, 1, nullptr, 1, nullptr, 1, &result),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cublasSdot_v2()"), std::string::npos);
  EXPECT_EQ(cublasSetPointerMode_v2(handle_, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSdot_v2(handle_, 1, nullptr, 1, nullptr, 1, &result), CUBLAS_STATUS_SUCCESS);
}

TEST(CublasLt, CountsAProductByWhatDescribesIt) {
  // D (21 x 22) = A^T (A is 23 x 21) * B (23 x 22), 24 times.
  void* a = nullptr;
  void* b = nullptr;
  void* d = nullptr;
  void* description = nullptr;
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&a, 0, 23, 21, 23), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&b, 0, 23, 22, 23), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&d, 0, 21, 22, 21), CUBLAS_STATUS_SUCCESS);
  const int32_t batch = 24;
  ASSERT_EQ(cublasLtMatrixLayoutSetAttribute(d, 5, &batch, sizeof batch), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatmulDescCreate(&description, 0, 0), CUBLAS_STATUS_SUCCESS);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  ASSERT_EQ(cublasLtMatmulDescSetAttribute(description, 3, &transposed, sizeof transposed),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatmul(nullptr,
                           description,
                           nullptr,
                           nullptr,
                           a,
                           nullptr,
                           b,
                           nullptr,
                           nullptr,
                           d,
                           nullptr,
                           d,
                           nullptr,
                           nullptr,
                           0,
                           nullptr),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemms().at({21, 22, 23, 24}), 1u);
  for (void* layout : {a, b, d}) {
    EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
  }
  EXPECT_EQ(cublasLtMatmulDescDestroy(description), CUBLAS_STATUS_SUCCESS);
}

TEST(CublasLt, FindsOneAlgorithm) {
  alignas(8) char results[2][96];  // cublasLtMatmulHeuristicResult_t
  int returned = 0;
  EXPECT_EQ(
      cublasLtMatmulAlgoGetHeuristic(
          nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 2, results, &returned),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(returned, 1);
}

}  // namespace
