#include "estimator/compute/compiled_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "estimator/compute/gpu_rates.h"

namespace estimator {
namespace {

constexpr int64_t kMi = 1 << 20;

/// Microseconds on an H200, as the trace of a program is priced.
double microseconds(const char* name, const std::vector<int64_t>& sizes, double bytes) {
  const Gpu& h200 = *find_gpu("h200-sxm");
  const GpuRates rates(h200, nullptr, {}, 1, Priced::kKernels);
  const CompiledKernelRate rate = compiled_kernel_rate(name, h200);
  const double memory = bytes / rates.memory_bytes_per_second(bytes) / rate.memory_share;
  return 1e6 * std::max(memory, compiled_kernel_seconds(rate, sizes));
}

// Measured on an H200 (torch 2.11, Triton 3.6): 16,384 x 4,096 elements in bf16 and in fp32.
TEST(CompiledKernel, IsAsLongInBf16WhereArithmeticBoundsIt) {
  constexpr double kElements = 64.0 * kMi;
  const std::vector<int64_t> pointwise = {64 * kMi}, rows = {16384, 4096};
  EXPECT_NEAR(microseconds("triton_poi_fused_add_15", pointwise, 6 * kElements) / 94.7, 1, 0.05);
  EXPECT_NEAR(microseconds("triton_poi_fused_gelu_1", pointwise, 4 * kElements) / 104.8, 1, 0.05);
  EXPECT_NEAR(microseconds("triton_poi_fused_gelu_1", pointwise, 8 * kElements) / 124.7, 1, 0.05);
  constexpr const char* kDropout = "triton_poi_fused_add_native_dropout_13";
  EXPECT_NEAR(microseconds(kDropout, pointwise, 6 * kElements) / 211.6, 1, 0.05);
  EXPECT_NEAR(microseconds(kDropout, pointwise, 12 * kElements) / 207.2, 1, 0.05);
  constexpr const char* kNorm = "triton_red_fused_native_layer_norm_3";
  EXPECT_NEAR(microseconds(kNorm, rows, 4 * kElements) / 100.0, 1, 0.10);
  EXPECT_NEAR(microseconds(kNorm, rows, 8 * kElements) / 128.6, 1, 0.05);
  constexpr const char* kHeldNorm = "triton_per_fused_native_layer_norm_1";
  EXPECT_NEAR(microseconds(kHeldNorm, {65536, 1024}, 4 * kElements) / 67.6, 1, 0.10);
}

// Random numbers bound dropout also where a row's softmax is in the same kernel; a backward draws
// none.
TEST(CompiledKernel, OfDropoutDrawsNumbersInReductionsToo) {
  const std::vector<int64_t> rows = {131072, 512};
  constexpr double kBytes = 8.0 * 64 * kMi;
  constexpr const char* kDrawing = "triton_per_fused__safe_softmax_native_dropout_5";
  constexpr const char* kGradients = "triton_per_fused_native_dropout_native_dropout_backward_12";
  EXPECT_NEAR(microseconds(kDrawing, rows, kBytes) / 216.5, 1, 0.01);
  EXPECT_LT(microseconds(kGradients, rows, kBytes), 135);
}

// 8,192 x 50,304 in bf16, and 4,096 x 128,256 in both types.
TEST(CompiledKernel, OfALossTakesAnExponentialOfEachElement) {
  constexpr const char* kOnline = "triton_red_fused__log_softmax__to_copy_prepare_softmax_online_2";
  constexpr const char* kGradient = "triton_red_fused__log_softmax__log_softmax_backward_data_7";
  EXPECT_NEAR(microseconds(kOnline, {8192, 50304}, 824e6) / 550, 1, 0.05);
  EXPECT_NEAR(microseconds(kOnline, {4096, 128256}, 1051e6) / 682, 1, 0.05);
  EXPECT_NEAR(microseconds(kOnline, {4096, 128256}, 2101e6) / 670, 1, 0.10);
  EXPECT_NEAR(microseconds(kGradient, {8192, 50304}, 1649e6) / 503, 1, 0.05);
  EXPECT_NEAR(microseconds(kGradient, {4096, 128256}, 4203e6) / 1096, 1, 0.10);
}

TEST(CompiledKernel, IsLongerOnAGpuWithFewerMultiprocessors) {
  const auto rate = [](const char* gpu) {
    return compiled_kernel_rate("triton_poi_fused_gelu_0", *find_gpu(gpu)).elements_per_second;
  };
  EXPECT_NEAR(rate("a100-sxm-80") / rate("h200-sxm"), 108.0 / 132, 1e-9);
}

TEST(CompiledKernel, OfAPersonIsNotKnown) {
  const CompiledKernelRate rate = compiled_kernel_rate("_gelu_kernel", *find_gpu("h200-sxm"));
  EXPECT_EQ(rate.memory_share, 1);
  EXPECT_EQ(compiled_kernel_seconds(rate, {64 * kMi}), 0);
  const auto gelu = compiled_kernel_rate("triton_poi_fused_gelu_0", *find_gpu("h200-sxm"));
  EXPECT_EQ(compiled_kernel_seconds(gelu, {}), 0) << "it was told no sizes";
}

}  // namespace
}  // namespace estimator
