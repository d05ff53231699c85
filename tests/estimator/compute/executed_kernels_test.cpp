#include "estimator/compute/executed_kernels.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;

OperatorRecord module_operator(const char* module_kind,
                               const char* name,
                               Shapes shapes,
                               double bytes) {
  OperatorRecord record;
  record.module_kind = module_kind;
  record.name = name;
  record.shapes = std::move(shapes);
  record.bytes = bytes;
  record.count = 1;
  return record;
}

double bytes_of(const std::vector<OperatorRecord>& records, Framework framework) {
  double bytes = 0;
  for (const ExecutedKernel& kernel : executed_kernels(records, framework)) {
    bytes += kernel.record.bytes;
  }
  return bytes;
}

constexpr int64_t kTokens = 4096, kWidth = 14336;
constexpr double kTensor = 2.0 * kTokens * kWidth;

// silu reads one and writes one, mul_ reads two and writes one; fused: two read, one written.
TEST(ExecutedKernels, MoveSwigluOnceInTheMegatronFramework) {
  const Shapes one = {{kTokens, 1, kWidth}}, two = {one[0], one[0]};
  const std::vector<OperatorRecord> forward = {
      module_operator("mlp", "aten::silu", one, 2 * kTensor),
      module_operator("mlp", "aten::mul_", two, 3 * kTensor)};
  EXPECT_DOUBLE_EQ(bytes_of(forward, Framework::kMegatronLm), 3 * kTensor);
  EXPECT_DOUBLE_EQ(bytes_of(forward, Framework::kPlain), 5 * kTensor);
}

// silu 2, by the other half 3, by the weights 2; fused: two read, one written.
TEST(ExecutedKernels, MoveAnExpertsWeightedSwigluOnce) {
  const std::vector<int64_t> rows = {kTokens, kWidth};
  const std::vector<OperatorRecord> forward = {
      module_operator("experts", "aten::silu", {rows}, 2 * kTensor),
      module_operator("experts", "aten::mul_", {rows, rows}, 3 * kTensor),
      module_operator("experts", "aten::mul_", {rows, {kTokens, 1}}, 2 * kTensor)};
  EXPECT_DOUBLE_EQ(bytes_of(forward, Framework::kMegatronLm), 3 * kTensor);
}

// Eight products of 512 rows fill what one leaves idle of 132 multiprocessors, and one call issues
// them.
TEST(ExecutedKernels, RunTheProductsOfARanksExpertsSideBySide) {
  OperatorRecord product =
      module_operator("experts", "aten::mm", {{512, 2048}, {2048, 1024}}, 2.0 * 512 * 3072);
  product.dtype = "BFloat16";
  product.flops = 2.0 * 512 * 2048 * 1024;
  const GpuRates rates(*find_gpu("h100-sxm"), nullptr);
  const auto kernel = [&](Framework framework) {
    return executed_kernels({product}, framework, 8).at(0);
  };
  const ExecutedKernel together = kernel(Framework::kMegatronLm), alone = kernel(Framework::kPlain);
  EXPECT_EQ(together.group, 8);
  EXPECT_EQ(alone.group, 1);
  EXPECT_LT(kernel_price(together, rates, Dtype::kBf16).seconds,
            0.8 * kernel_price(alone, rates, Dtype::kBf16).seconds);
  const double call = rates.launch().host_forward_seconds;
  EXPECT_DOUBLE_EQ(issue_seconds(alone, rates.launch()), call);
  EXPECT_DOUBLE_EQ(issue_seconds(together, rates.launch()), call / 8 + 9e-6);
}

/// One product of a grouped call: rows of [m, k] by [k, n], or a weight's gradient [n, m] x [m, k]
/// into an fp32 sum.
struct PublishedProduct {
  int64_t experts, m, n, k;
  bool weight_gradient;
  double share_of_peak;
};

// MooreThreads/SimuMax @4dcaae5, configs/system/b200_bf16_ceperm.json, group_matmul of 2,250
// TFLOP/s.
TEST(ExecutedKernels, TakeAsLongForGroupedProductsAsPublished) {
  const GpuRates rates(*find_gpu("b200-sxm"), nullptr);
  for (const auto& [experts, m, n, k, weight_gradient, share] :
       {PublishedProduct{256, 128, 4096, 7168, false, 0.208},
        PublishedProduct{64, 512, 4096, 7168, false, 0.367},
        PublishedProduct{64, 512, 4096, 7168, true, 0.219},
        PublishedProduct{40, 616, 3072, 5120, false, 0.462},
        PublishedProduct{40, 616, 3072, 5120, true, 0.258},
        PublishedProduct{20, 1232, 3072, 5120, true, 0.328}}) {
    const auto bytes = static_cast<double>(weight_gradient ? 2 * (m * k + m * n) + 8 * n * k
                                                           : 2 * (m * k + n * k + m * n));
    const Shapes shapes = weight_gradient ? Shapes{{n, k}, {n, m}, {m, k}} : Shapes{{m, k}, {k, n}};
    OperatorRecord product =
        module_operator("experts", weight_gradient ? "aten::addmm" : "aten::mm", shapes, bytes);
    product.dtype = weight_gradient ? "Float" : "BFloat16";
    product.flops = 2.0 * static_cast<double>(m * n * k);
    const auto kernel = executed_kernels({product}, Framework::kMegatronLm, experts).at(0);
    const double published = product.flops / (share * 2250e12);
    EXPECT_NEAR(kernel_price(kernel, rates, Dtype::kBf16).seconds / published, 1, 0.2)
        << m << " rows" << (weight_gradient ? ", weight gradient" : "");
  }
}

// Fused: the gradient and both inputs read, two gradients written.
TEST(ExecutedKernels, MoveTheBackwardOfSwigluOnce) {
  const Shapes one = {{kTokens, 1, kWidth}}, two = {one[0], one[0]};
  std::vector<OperatorRecord> backward = {
      module_operator("mlp", "aten::silu", one, 2 * kTensor),
      module_operator("mlp", "aten::mul_", two, 3 * kTensor),
      module_operator("mlp", "aten::mul", two, 3 * kTensor),
      module_operator("mlp", "aten::silu_backward", two, 3 * kTensor)};
  for (OperatorRecord& record : backward) record.direction = Direction::kBackward;
  EXPECT_NEAR(bytes_of(backward, Framework::kMegatronLm) / kTensor, 5, 0.01);
}

// Bias, dropout and residual: two tensors read, one written, and a mask of one byte an element.
TEST(ExecutedKernels, MoveBiasDropoutAndResidualOnce) {
  const Shapes activation = {{2048, 4, kWidth}}, bias = {activation[0], {kWidth}},
               residual = {activation[0], activation[0]};
  const std::vector<OperatorRecord> chain = {
      module_operator("other", "aten::add", bias, 2 * kTensor),
      module_operator("other", "aten::native_dropout", activation, 2.5 * kTensor),
      module_operator("other", "aten::add", residual, 3 * kTensor)};
  EXPECT_NEAR(bytes_of(chain, Framework::kMegatronLm) / kTensor, 3.5, 0.01);
  EXPECT_DOUBLE_EQ(bytes_of(chain, Framework::kPlain), 7.5 * kTensor);
}

TEST(ExecutedKernels, KeepTheResidualThatHasNoDropoutBesideIt) {
  const Shapes residual = {{2048, 4, kWidth}, {2048, 4, kWidth}};
  const std::vector<OperatorRecord> alone = {
      module_operator("other", "aten::add", residual, 3 * kTensor)};
  EXPECT_DOUBLE_EQ(bytes_of(alone, Framework::kMegatronLm), 3 * kTensor);
}

TEST(ExecutedKernels, LeaveMaskingToTheFusedSoftmaxButNotToTheEmbedding) {
  const OperatorRecord of_weights =
      module_operator("attention", "aten::masked_fill_", {{32, 2048, 2048}, {1, 2048, 2048}}, 1e8);
  const OperatorRecord of_tokens =
      module_operator("embedding", "aten::masked_fill_", {{4096, 1, 8192}, {4096, 1, 1}}, 1e8);
  EXPECT_TRUE(executed_kernels({of_weights}, Framework::kMegatronLm).empty());
  EXPECT_EQ(executed_kernels({of_tokens}, Framework::kMegatronLm).size(), 1u);
}

TEST(ExecutedKernels, CopyHeadsButNotTheSquareOfWeights) {
  const auto copy = [](int64_t rows, int64_t columns) {
    const std::vector<int64_t> shape = {32, rows, columns};
    return module_operator("attention", "aten::copy_", {shape, shape}, 1e8);
  };
  EXPECT_TRUE(executed_kernels({copy(2048, 2048)}, Framework::kMegatronLm).empty());
  EXPECT_EQ(executed_kernels({copy(2048, 224)}, Framework::kMegatronLm).size(), 1u);
}

TEST(ExecutedKernels, OfAnOperatorWithoutInputsAreItself) {
  EXPECT_EQ(executed_kernels({module_operator("other", "aten::add", {}, 8)}, Framework::kMegatronLm)
                .size(),
            1u);
}

double memory_share(const OperatorRecord& record, Framework framework) {
  return executed_kernels({record}, framework).at(0).memory_share;
}

// pytorch pull requests 120678 and 150233: 0.99 and 1.03 TB/s of an H100's 2.97.
TEST(ExecutedKernels, ReachAThirdOfTheMemorysRateWhereNanotronReadsViews) {
  const Shapes one = {{kTokens, 1, kWidth}};
  EXPECT_DOUBLE_EQ(memory_share(module_operator("mlp", "aten::silu", one, 8), Framework::kNanotron),
                   0.35);
  EXPECT_DOUBLE_EQ(memory_share(module_operator("mlp", "aten::silu", one, 8), Framework::kPlain),
                   1);
  OperatorRecord cat = module_operator("mlp", "aten::cat", {{kTokens * kWidth}}, 8);
  cat.direction = Direction::kBackward;
  EXPECT_DOUBLE_EQ(memory_share(cat, Framework::kNanotron), 0.33);
}

// What models/llama.py moves for query, key and value, in tensors of one of them: packed into one
// 6, key and value concatenated and copied 8, query and key turned 4.
TEST(ExecutedKernels, MoveNanotronsHeadsAsItsSourceDoes) {
  const Shapes packed = {{3, 4, 4096, 32, 64}, {3, 4, 4096, 32, 64}};
  const Shapes heads = {{4096, 4, 32, 64}, {4096, 4, 32, 64}};
  const Shapes rotated = {{4096, 4, 32, 64}, {4096, 1, 1, 64}};
  const Shapes half = {{4096, 4, 32, 32}, {4096, 4, 32, 32}, {4096, 1, 1, 32}};
  std::vector<OperatorRecord> shard = {module_operator("attention", "aten::copy_", packed, 6)};
  for (int tensor = 0; tensor < 2; ++tensor) {  // of query and key; the second copy is the value's
    shard.push_back(module_operator("attention", "aten::mul", rotated, 2));
    shard.push_back(module_operator("attention", "aten::addcmul_", half, 1.5));
    shard.push_back(module_operator("attention", "aten::addcmul_", half, 1.5));
    shard.push_back(module_operator("attention", "aten::copy_", heads, 2));
  }
  EXPECT_DOUBLE_EQ(bytes_of(shard, Framework::kNanotron), 6 + 8 + 4);
}

}  // namespace
}  // namespace estimator
