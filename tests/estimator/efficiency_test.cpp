#include "estimator/efficiency.h"

#include <gtest/gtest.h>

#include "estimator/units.h"

namespace estimator {
namespace {

const Gpu& gpu(const char* name) { return *find_gpu(name); }

double matmul_teraflops(const char* name, int64_t m, int64_t n, int64_t k) {
  const double share = matmul_share(gpu(name)).of_peak *
                       matmul_shape_share({.m = m, .n = n, .k = k}, gpu(name).multiprocessors);
  return gpu(name).peak_flops(Dtype::kFp16) * share / 1e12;
}

// Azure/AI-benchmarking-guide @8fd0c6e: cuBLASLt, fp16, random data, A100 80 GB.
TEST(MatmulShare, OfSquaresOnA100IsWithin20PercentOfMeasured) {
  EXPECT_NEAR(matmul_teraflops("a100-sxm-80", 1024, 1024, 1024) / 119.4, 1, 0.20);
  EXPECT_NEAR(matmul_teraflops("a100-sxm-80", 2048, 2048, 2048) / 221.8, 1, 0.20);
  EXPECT_NEAR(matmul_teraflops("a100-sxm-80", 4096, 4096, 4096) / 228.0, 1, 0.20);
  EXPECT_NEAR(matmul_teraflops("a100-sxm-80", 8192, 8192, 8192) / 253.7, 1, 0.20);
  EXPECT_NEAR(matmul_teraflops("a100-sxm-80", 16384, 16384, 16384) / 256.5, 1, 0.20);
  EXPECT_NEAR(matmul_teraflops("a100-sxm-80", 6144, 12288, 12288) / 250.8, 1, 0.20);
}

TEST(MatmulShapeShare, LosesHalfWhenOneTileStartsASecondWave) {
  // 132 tiles of 256 x 128 fill an H100 once; the 133rd needs another wave.
  const MatmulShape full{.m = 256 * 132, .n = 128, .k = 1 << 20};
  const MatmulShape one_more{.m = 256 * 133, .n = 128, .k = 1 << 20};
  EXPECT_NEAR(matmul_shape_share(full, 132), 1.0, 0.001);
  EXPECT_LT(matmul_shape_share(one_more, 132), 0.9);
}

TEST(MatmulShapeShare, IsAShareForEveryShape) {
  for (const int64_t m : {1, 7, 64, 1000, 8192}) {
    for (const int64_t n : {1, 128, 53248}) {
      for (const int64_t k : {1, 100, 16384}) {
        const double share = matmul_shape_share({.m = m, .n = n, .k = k}, 132);
        EXPECT_GT(share, 0) << m << " " << n << " " << k;
        EXPECT_LE(share, 1) << m << " " << n << " " << k;
      }
    }
  }
}

TEST(MatmulShapeShare, OfABatchFillsTheGpuTogether) {
  const MatmulShape one{.batch = 1, .m = 256, .n = 128, .k = 4096};
  const MatmulShape many{.batch = 132, .m = 256, .n = 128, .k = 4096};
  EXPECT_GT(matmul_shape_share(many, 132), 20 * matmul_shape_share(one, 132));
}

TEST(MemorySizeShare, NeverMakesMoreBytesFaster) {
  double before = 0;
  for (double bytes = 1; bytes < 1e11; bytes *= 1.1) {
    const double time = bytes / memory_size_share(bytes);
    EXPECT_GE(time, before);
    before = time;
  }
  EXPECT_DOUBLE_EQ(memory_size_share(1e9), 1);
}

double attention_teraflops(
    const char* name, Dialect dialect, AttentionPass pass, int64_t width, int64_t sequence) {
  return gpu(name).peak_flops(Dtype::kFp16) *
         attention_share(gpu(name), dialect, pass, width, sequence).of_peak / 1e12;
}

// Figures of Dao-AILab/flash-attention @0251105, causal, head width 128, 8,192 tokens.
TEST(AttentionShare, IsThatOfTheDialectsKernel) {
  const auto forward = AttentionPass::kForward;
  EXPECT_NEAR(attention_teraflops("h100-sxm", Dialect::kMegatronLm, forward, 128, 8192), 529, 1e-6);
  EXPECT_NEAR(attention_teraflops("h100-sxm", Dialect::kPlain, forward, 128, 8192), 308, 1e-6);
  EXPECT_NEAR(
      attention_teraflops("a100-sxm-80", Dialect::kMegatronLm, forward, 64, 4096), 156, 1e-6);
}

TEST(AttentionShare, LiesBetweenMeasuredSequencesAndStaysBeyondThem) {
  const auto at = [](int64_t sequence) {
    return attention_teraflops(
        "a100-sxm-80", Dialect::kPlain, AttentionPass::kForward, 128, sequence);
  };
  EXPECT_GT(at(6000), 173);
  EXPECT_LT(at(6000), 182);
  EXPECT_NEAR(at(131072), 189, 1e-6);
  EXPECT_NEAR(at(1), 99, 1e-6);
}

TEST(AttentionShare, SaysWhenItIsAssumed) {
  const auto share = [](const char* name) {
    return attention_share(gpu(name), Dialect::kPlain, AttentionPass::kBackward, 128, 8192);
  };
  EXPECT_FALSE(share("h100-sxm").assumed);
  EXPECT_TRUE(share("l40s").assumed);
  EXPECT_NEAR(share("l40s").of_peak, 182.0 / 312, 1e-9);  // A100's
}

TEST(Shares, AreSharesForEveryGpu) {
  for (const Gpu& each : gpus()) {
    EXPECT_GT(matmul_share(each).of_peak, 0.5) << each.id;
    EXPECT_LT(matmul_share(each).of_peak, 1) << each.id;
    EXPECT_GT(memory_share(each).of_peak, 0.5) << each.id;
    EXPECT_LT(memory_share(each).of_peak, 1) << each.id;
    for (const Dialect dialect : {Dialect::kPlain, Dialect::kMegatronLm}) {
      for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
        const double share = attention_share(each, dialect, pass, 128, 8192).of_peak;
        EXPECT_GT(share, 0.2) << each.id;
        EXPECT_LT(share, 1) << each.id;
      }
    }
  }
}

}  // namespace
}  // namespace estimator
