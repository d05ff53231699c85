#include "estimator/compute/compute_time.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "estimator/profile/product_operators.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

OperatorRecord operation(const char* name,
                         const char* dtype,
                         std::vector<std::vector<int64_t>> shapes,
                         double flops,
                         double bytes = 0) {
  OperatorRecord record;
  record.name = name;
  record.dtype = dtype;
  record.shapes = std::move(shapes);
  record.flops = flops;
  record.bytes = bytes;
  return record;
}

constexpr double kLaunchSeconds = 4e-6;  // launch.json, of an operator
constexpr double k8192Cubed = 2.0 * 8192 * 8192 * 8192;

OperatorRecord square_product(const char* name, const char* dtype) {
  return operation(name, dtype, {{8192, 8192}, {8192, 8192}}, k8192Cubed);
}

double seconds(const OperatorRecord& record,
               const char* gpu = "h100-sxm",
               Attention attention = Attention::kFused) {
  return operator_seconds(record,
                          {.gpu = *find_gpu(gpu), .dtype = Dtype::kBf16, .attention = {attention}});
}

TEST(OperatorSeconds, OfNoWorkAreTheLaunch) {
  EXPECT_DOUBLE_EQ(seconds(operation("aten::add", "Float", {}, 0)), kLaunchSeconds);
}

// A profile may claim work of inputs without elements: it gets a usual shape's rate, and is finite.
TEST(OperatorSeconds, OfWorkOnNothingAreFinite) {
  constexpr double kFlops = 1e9;
  EXPECT_LT(seconds(operation("aten::mm", "BFloat16", {{0, 256}, {256, 256}}, kFlops)), 1);
  const char* forward = "aten::_scaled_dot_product_flash_attention";
  for (const std::vector<std::vector<int64_t>>& shapes :
       {std::vector<std::vector<int64_t>>{{1, 0, 64, 64}},
        {{1, 8, 64, 64}, {1, 8, 64, 64}, {1, 8, 64, 0}}}) {
    EXPECT_LT(seconds(operation(forward, "BFloat16", shapes, kFlops)), 1);
  }
}

TEST(Products, AreToldByTheirNames) {
  EXPECT_TRUE(is_matrix_product("aten::addmm"));
  EXPECT_FALSE(is_matrix_product("aten::add"));
  EXPECT_TRUE(is_attention("flash_attn::_flash_attn_forward"));
  EXPECT_TRUE(is_attention("aten::_scaled_dot_product_cudnn_attention_backward"));
  EXPECT_FALSE(is_attention("aten::bmm"));
}

// cublas_gemm in transformer_engine/common/gemm/cublaslt_gemm.cu. TF32 has half of bf16's peak on
// an H100; a V100 has none.
TEST(OperatorSeconds, OfTransformerEnginesProductsInFp32AreThoseOfTf32) {
  const auto work = [](const char* name, const char* dtype, const char* gpu) {
    return seconds(square_product(name, dtype), gpu) - kLaunchSeconds;
  };
  EXPECT_NEAR(
      work("te::mm", "Float", "h100-sxm") / work("aten::mm", "BFloat16", "h100-sxm"), 2, 0.01);
  EXPECT_DOUBLE_EQ(work("te::mm", "BFloat16", "h100-sxm"),
                   work("aten::mm", "BFloat16", "h100-sxm"));
  EXPECT_DOUBLE_EQ(work("te::mm", "Float", "v100-sxm2-16"),
                   work("aten::mm", "Float", "v100-sxm2-16"));
}

TEST(OperatorPrice, SaysWhatBoundsIt) {
  const auto bound = [](const OperatorRecord& record) {
    const ComputeTarget target{.gpu = *find_gpu("h100-sxm")};
    return operator_price(record, target.rates(), target.dtype).bound;
  };
  EXPECT_EQ(bound(operation("aten::mm", "BFloat16", {{8192, 8192}, {8192, 8192}}, 1.1e12, 4e8)),
            Bound::kCompute);
  EXPECT_EQ(bound(operation("aten::add", "BFloat16", {{1 << 28}}, 2.7e8, 1.6e9)), Bound::kMemory);
  EXPECT_EQ(bound(operation("aten::add", "Float", {{1}}, 1, 12)), Bound::kLaunch);
}

TEST(OperatorPrice, GrowsAsTheKernelReachesLessOfTheMemorysRate) {
  const GpuRates rates(*find_gpu("h100-sxm"), nullptr);
  const OperatorRecord copy = operation("aten::copy_", "BFloat16", {{1 << 28}}, 0, 1e9);
  const double whole = operator_price(copy, rates, Dtype::kBf16).seconds - kLaunchSeconds;
  const double third = operator_price(copy, rates, Dtype::kBf16, 1.0 / 3).seconds - kLaunchSeconds;
  EXPECT_NEAR(third / whole, 3, 1e-9);
}

// The rate is that of the scales: one for each operand, for each row and column, or for each 128 or
// 32 elements of a row.
TEST(OperatorPrice, OfAScaledProductIsThatOfItsScales) {
  const int64_t n = 8192;
  const MatmulShape shape{.m = n, .n = n, .k = n};
  const double flops = 2.0 * n * n * n;
  struct Case {
    const char* gpu;
    std::vector<int64_t> left, right;
    ProductScaling scaling;
  };
  const std::vector<Case> cases = {{"h100-sxm", {1}, {1}, ProductScaling::kTensor},
                                   {"h100-sxm", {n, 1}, {1, n}, ProductScaling::kRow},
                                   {"h100-sxm", {n, n / 128}, {n / 128, n}, ProductScaling::kBlock},
                                   {"b200", {1}, {1}, ProductScaling::kTensor},
                                   {"b200", {n, n / 32}, {n / 32, n}, ProductScaling::kMicro}};
  std::set<double> seen;
  for (const Case& product : cases) {
    SCOPED_TRACE(std::string(product.gpu) + " " + std::string(to_string(product.scaling)));
    const GpuRates rates(*find_gpu(product.gpu), nullptr);
    const OperatorRecord record = operation("aten::_scaled_mm",
                                            "Float8_e4m3fn",
                                            {{n, n}, {n, n}, product.left, product.right},
                                            flops,
                                            4e8);
    const double rate =
        flops / (operator_price(record, rates, Dtype::kBf16).seconds - kLaunchSeconds);
    EXPECT_NEAR(rate / rates.scaled_flops_per_second(shape, product.scaling), 1, 1e-9);
    EXPECT_TRUE(seen.insert(rate).second);
  }
}

// Two elements of 4 bits are one of a shape.
TEST(OperatorPrice, OfAProductInFourBitsIsThatOfItsElements) {
  const int64_t n = 8192;
  const double flops = 2.0 * n * n * n;
  const OperatorRecord record = operation("aten::_scaled_mm",
                                          "Float4_e2m1fn_x2",
                                          {{n, n / 2}, {n / 2, n}, {n, n / 16}, {n / 16, n}},
                                          flops,
                                          7e7);
  const GpuRates rates(*find_gpu("gb300"), nullptr);
  const double rate =
      flops / (operator_price(record, rates, Dtype::kBf16).seconds - kLaunchSeconds);
  const double expected =
      rates.scaled_flops_per_second({.m = n, .n = n, .k = n}, ProductScaling::kNvfp4);
  EXPECT_NEAR(rate / expected, 1, 1e-9);
}

// 16 heads of 108 elements of 16 bits, which are no multiple of 16 bytes: the fp32 units of an
// A100, which load single elements and are not slowed once more.
TEST(GpuRates, OfABatchOfMisalignedProductsAreThoseOfTheFp32Units) {
  const GpuRates rates(*find_gpu("a100-sxm-80"), nullptr);
  MatmulShape shape{.batch = 16, .m = 2048, .n = 2048, .k = 108, .is_misaligned = true};
  const double misaligned = rates.matmul_flops_per_second(shape, Dtype::kFp16, false);
  shape.is_misaligned = false;
  EXPECT_EQ(misaligned, rates.matmul_flops_per_second(shape, Dtype::kFp32, false));
  EXPECT_NEAR(
      misaligned / rates.matmul_flops_per_second(shape, Dtype::kFp16, false), 19.5 / 312, 1e-9);
}

// SIMT kernels load single elements.
TEST(GpuRates, OfAProductInFp32AreTheSameMisaligned) {
  const GpuRates rates(*find_gpu("h100-sxm"), nullptr);
  MatmulShape shape{.m = 4096, .n = 4095, .k = 4096};
  const double aligned = rates.matmul_flops_per_second(shape, Dtype::kFp32, false);
  shape.is_misaligned = true;
  EXPECT_EQ(rates.matmul_flops_per_second(shape, Dtype::kFp32, false), aligned);
}

TEST(OperatorPrice, OfAProductIsThatOfMisalignedRowsWhereTheRecordSaysSo) {
  const GpuRates rates(*find_gpu("h100-sxm"), nullptr);
  OperatorRecord odd = operation("aten::mm", "BFloat16", {{4095, 4096}, {4096, 4096}}, 1.37e11);
  const double aligned = operator_price(odd, rates, Dtype::kBf16).seconds - kLaunchSeconds;
  odd.is_misaligned = true;
  const double misaligned = operator_price(odd, rates, Dtype::kBf16).seconds - kLaunchSeconds;
  EXPECT_NEAR(aligned / misaligned, 0.13, 1e-9);
}

TEST(LaunchCost, OfTheHostIsTheSameForPlansAndPrograms) {
  const LaunchCost plan = assumed_launch_cost(*find_gpu("h100-sxm"), Priced::kOperators);
  const LaunchCost program = assumed_launch_cost(*find_gpu("h100-sxm"), Priced::kKernels);
  EXPECT_EQ(plan.host_call_seconds, program.host_call_seconds);
  EXPECT_EQ(plan.host_operator_seconds, program.host_operator_seconds);
  EXPECT_EQ(plan.host_ranges, program.host_ranges);
}

// TransformerEngine issue 2053: 37.08 us on a Grace; 20.06 on the host that was measured.
TEST(LaunchCost, OfASlowerHostIsLargerOnTheHostAlone) {
  const LaunchCost usual = assumed_launch_cost(*find_gpu("h100-sxm"));
  const LaunchCost grace = assumed_launch_cost(*find_gpu("gb200"));
  EXPECT_EQ(grace.kernel_seconds, usual.kernel_seconds);
  EXPECT_NEAR(grace.host_call_seconds / usual.host_call_seconds, 37.08 / 20.06, 1e-2);
  EXPECT_DOUBLE_EQ(grace.host_operator_seconds / usual.host_operator_seconds,
                   grace.host_call_seconds / usual.host_call_seconds);
}

// 1 TB over 3.352 TB/s x 0.886.
TEST(OperatorSeconds, OfACopyAreItsBytesOverTheMeasuredBandwidth) {
  EXPECT_NEAR(seconds(operation("aten::copy_", "BFloat16", {}, 5e11, 1e12)), 0.3367, 1e-4);
}

// 794.5 TFLOPS at most; 8192^3 fills its waves to 97 %.
TEST(OperatorSeconds, OfALargeProductOnH100AreNearMeasuredRates) {
  const double teraflops = k8192Cubed / seconds(square_product("aten::mm", "BFloat16")) / 1e12;
  EXPECT_GT(teraflops, 700);
  EXPECT_LT(teraflops, 794.5);
}

TEST(OperatorSeconds, OfAProductInFp32UseTheFp32Rate) {
  const double ratio = seconds(square_product("aten::mm", "Float")) /
                       seconds(square_product("aten::mm", "BFloat16"));
  EXPECT_NEAR(ratio, 989.4 / 67, 0.1);
}

// An H100's share of adding to fp32 is taken from A100's: 0.95.
TEST(OperatorSeconds, OfAWeightGradientAddedToAnFp32SumUseThePlansRate) {
  const OperatorRecord fused =
      operation("aten::addmm_", "Float", {{8192, 8192}, {8192, 8192}, {8192, 8192}}, k8192Cubed);
  const double kernel = seconds(square_product("aten::mm", "BFloat16")) - kLaunchSeconds;
  EXPECT_NEAR(seconds(fused), kernel / 0.95 + kLaunchSeconds, 1e-9);
}

TEST(OperatorSeconds, OfAProductThatIsThinAreBoundByItsBytes) {
  // One token: 2 FLOP for each weight of 2 bytes.
  const OperatorRecord thin = operation("aten::mm",
                                        "BFloat16",
                                        {{1, 16384}, {16384, 53248}},
                                        2.0 * 16384 * 53248,
                                        2.0 * 16384 * 53248);
  EXPECT_GT(seconds(thin), thin.bytes / 3.352e12);
}

// The weighted sum of each token's experts, and the gradients of its operands: 134 MB of fp32.
TEST(OperatorSeconds, OfProductsOfVectorsAreThoseOfTheirBytes) {
  constexpr int64_t kTokens = 16384, kTopk = 8, kWidth = 256;
  constexpr double kFlops = 2.0 * kTokens * kTopk * kWidth, kBytes = 4.0 * kTokens * kTopk * kWidth;
  const double copy = seconds(operation("aten::add", "Float", {}, 0, kBytes));
  for (const std::vector<std::vector<int64_t>>& shapes :
       {std::vector<std::vector<int64_t>>{{kTokens, 1, kTopk}, {kTokens, kTopk, kWidth}},
        {{kTokens, kTopk, 1}, {kTokens, 1, kWidth}},
        {{kTokens, kTopk, kWidth}, {kTokens, kWidth, 1}}}) {
    EXPECT_NEAR(seconds(operation("aten::bmm", "Float", shapes, kFlops, kBytes)), copy, 0.2 * copy);
  }
}

TEST(OperatorSeconds, OfABatchedProductCountTheBatch) {
  const OperatorRecord batched = operation(
      "aten::bmm", "BFloat16", {{64, 2048, 128}, {64, 128, 2048}}, 2.0 * 64 * 2048 * 2048 * 128);
  const OperatorRecord joined = operation(
      "aten::mm", "BFloat16", {{64 * 2048, 128}, {128, 2048}}, 2.0 * 64 * 2048 * 2048 * 128);
  EXPECT_NEAR(seconds(batched) / seconds(joined), 1, 0.02);
}

TEST(OperatorSeconds, OfFlashAttentionReadTheSequenceFromEitherLayout) {
  const double flops = 1e12;
  const OperatorRecord inner =
      operation("aten::_flash_attention_forward", "BFloat16", {{1, 8192, 16, 128}}, flops);
  const OperatorRecord outer = operation(
      "aten::_scaled_dot_product_flash_attention", "BFloat16", {{1, 16, 8192, 128}}, flops);
  EXPECT_NEAR(flops / (seconds(inner) - kLaunchSeconds) / 1e12, 529, 0.1);
  EXPECT_DOUBLE_EQ(seconds(inner), seconds(outer));
  EXPECT_NEAR(
      flops / (seconds(inner, "h100-sxm", Attention::kFlash) - kLaunchSeconds) / 1e12, 308, 0.1);
}

TEST(OperatorSeconds, OfFlashAttentionBackwardUseTheBackwardsRate) {
  const OperatorRecord backward =
      operation("aten::_flash_attention_backward", "BFloat16", {{1, 8192, 16, 128}}, 1e12);
  EXPECT_NEAR(1e12 / (seconds(backward) - kLaunchSeconds) / 1e12, 483, 0.1);
}

// data/attention.json: 540 TFLOP/s backward of heads of 192 and 128 at 8,192 tokens, 643 forward.
TEST(OperatorSeconds, OfAttentionReadTheWidthsOfKeysAndValues) {
  const std::vector<int64_t> narrow = {1, 8192, 128, 128}, wide = {1, 8192, 128, 192};
  const auto rate = [](const OperatorRecord& record) {
    return 1e12 / (seconds(record, "h200-sxm") - kLaunchSeconds) / 1e12;
  };
  EXPECT_NEAR(
      rate(operation("aten::_efficient_attention_forward", "BFloat16", {wide, wide, narrow}, 1e12)),
      643,
      0.1);
  EXPECT_NEAR(
      rate(operation(
          "aten::_efficient_attention_backward", "BFloat16", {narrow, wide, wide, narrow}, 1e12)),
      540,
      0.1);
}

TEST(GpuRates, AreShownForTheModelsOwnHeads) {
  const Plan plan = small_plan({{"model",
                                 {{"multi_latent_attention", true},
                                  {"position_embedding", "rope"},
                                  {"attention_dropout", 0}}}});
  const auto terms = compute_target(plan, *find_gpu("h200-sxm"), nullptr)
                         .rates()
                         .terms(Dtype::kBf16, /*flash=*/true);
  const auto found = std::find_if(terms.begin(), terms.end(), [](const RateTerm& term) {
    return term.name == "flash attention forward, 64 heads of 192 and 128, 8192 tokens";
  });
  ASSERT_NE(found, terms.end());
  EXPECT_NEAR(found->value / 1e12, 643, 1e-6);
}

TEST(OperatorSeconds, RefuseATypeThatTheGpuLacks) {
  EXPECT_THROW(seconds(square_product("aten::mm", "BFloat16"), "v100"), UserError);
}

TEST(OperatorSeconds, AreFiniteForOddShapes) {
  EXPECT_GT(seconds(operation("aten::mm", "BFloat16", {}, 1e9)), 0);
  EXPECT_GT(seconds(operation("aten::mm", "BFloat16", {{4}, {4}}, 1e9)), 0);
  EXPECT_GT(seconds(operation("aten::_flash_attention_forward", "BFloat16", {}, 1e9)), 0);
}

}  // namespace
}  // namespace estimator
