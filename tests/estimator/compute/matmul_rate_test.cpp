#include "estimator/compute/matmul_rate.h"

#include <gtest/gtest.h>

#include "estimator/compute/gpu_rates.h"

namespace estimator {
namespace {

const Gpu& gpu(const char* name) { return *find_gpu(name); }

double teraflops(const char* name, const MatmulShape& shape, bool accumulates = false) {
  const double share = matmul_share(matmul_rate(gpu(name)), gpu(name), shape, accumulates);
  return gpu(name).peak_flops(Dtype::kFp16) * share / 1e12;
}

double teraflops(const char* name, int64_t m, int64_t n, int64_t k, bool accumulates = false) {
  return teraflops(name, {.m = m, .n = n, .k = k}, accumulates);
}

// Azure/AI-benchmarking-guide @8fd0c6e: cuBLASLt, fp16, random data, A100 80 GB.
TEST(MatmulShare, OfSquaresOnA100IsNearMeasured) {
  EXPECT_NEAR(teraflops("a100-sxm-80", 1024, 1024, 1024) / 119.4, 1, 0.20);
  EXPECT_NEAR(teraflops("a100-sxm-80", 2048, 2048, 2048) / 221.8, 1, 0.15);
  EXPECT_NEAR(teraflops("a100-sxm-80", 4096, 4096, 4096) / 228.0, 1, 0.15);
  EXPECT_NEAR(teraflops("a100-sxm-80", 8192, 8192, 8192) / 253.7, 1, 0.02);
  EXPECT_NEAR(teraflops("a100-sxm-80", 16384, 16384, 16384) / 256.5, 1, 0.02);
  EXPECT_NEAR(teraflops("a100-sxm-80", 6144, 12288, 12288) / 250.8, 1, 0.03);
}

// MooreThreads/SimuMax @4dcaae5, configs/system: share of 312 and 2250 TFLOPS; products of a
// Llama-3 70B and 405B layer, and of DeepSeek layers on the PCIe card, which set no constant but
// the median.
TEST(MatmulShare, OfLayersIsWithin10PercentOfMeasured) {
  EXPECT_NEAR(teraflops("b200-sxm", 4096, 57344, 8192) / (2250 * 0.4867), 1, 0.10);
  EXPECT_NEAR(teraflops("b200-sxm", 4096, 16384, 53248) / (2250 * 0.5109), 1, 0.10);
  EXPECT_NEAR(teraflops("b200-sxm", 53248, 16384, 4096, true) / (2250 * 0.4546), 1, 0.10);
  EXPECT_NEAR(teraflops("b200-sxm", 4096, 2048, 8192) / (2250 * 0.5530), 1, 0.12);
  EXPECT_NEAR(teraflops("a100-pcie-80", 4096, 24576, 5120) / (312 * 0.7504), 1, 0.05);
  EXPECT_NEAR(teraflops("a100-pcie-80", 4096, 5120, 1536) / (312 * 0.7375), 1, 0.10);
  EXPECT_NEAR(teraflops("a100-pcie-80", 24576, 5120, 4096, true) / (312 * 0.7165), 1, 0.05);
}

TEST(MatmulShare, NeverExceedsWhatTheBoardsPowerSustains) {
  const MatmulRate rate = matmul_rate(gpu("b200-sxm"));
  EXPECT_GT(rate.best_share, rate.sustained_share);
  const MatmulShape large{.m = 16384, .n = 16384, .k = 16384};
  EXPECT_DOUBLE_EQ(matmul_share(rate, gpu("b200-sxm"), large, false), rate.sustained_share);
}

// pytorch/FBGEMM pull request 2546, an H100 at 500 W.
TEST(MatmulShare, IsLowerWhereTheBoardIsGivenLessPower) {
  EXPECT_NEAR(teraflops("h100-sxm-96", 8192, 8192, 8192) / 585.2, 1, 0.02);
  EXPECT_NEAR(teraflops("h100-sxm-96", 65536, 7168, 8192) / 575.1, 1, 0.01);
  EXPECT_NEAR(teraflops("h100-sxm-96", 65536, 8192, 3584) / 546.3, 1, 0.06);
}

// facebookexperimental/triton pull request 740, cuBLAS on a GB300, 8,192 x 8,192 by k; it set no
// constant.
TEST(MatmulShare, OfSquaresOnGb300IsNearMeasured) {
  EXPECT_NEAR(teraflops("gb300", 8192, 8192, 1024) / 1745.8, 1, 0.04);
  EXPECT_NEAR(teraflops("gb300", 8192, 8192, 4096) / 1756.3, 1, 0.04);
  EXPECT_NEAR(teraflops("gb300", 8192, 8192, 8192) / 1717.4, 1, 0.04);
  EXPECT_NEAR(teraflops("gb300", 8192, 8192, 16384) / 1812.1, 1, 0.04);
}

// ai-dynamo/aiconfigurator @095f58a, trtllm 1.3.0rc20, 8,192 x 10,240 by 8,192: 0.4729 and 0.5582
// ms, of which the quantization of the input (compute_scale and scale_matrix) takes 0.0944 and
// 0.0949.
TEST(Float8Rate, IsHigherWhereTheBoardIsGivenMorePower) {
  const MatmulShape shape{.m = 8192, .n = 10240, .k = 8192};
  const auto milliseconds = [&](const char* name) {
    const GpuRates rates(gpu(name), nullptr);
    return 1e3 * shape.flops() / rates.scaled_flops_per_second(shape, ProductScaling::kTensor);
  };
  EXPECT_NEAR(milliseconds("gb300") / (0.4729 - 0.0944), 1, 0.06);
  EXPECT_NEAR(milliseconds("gb200") / (0.5582 - 0.0949), 1, 0.06);
}

TEST(Float8Rate, IsBelowThatOfASingleScaleTheMoreScalesThereAre) {
  for (const char* name : {"h100-sxm", "h100-sxm-96", "h200-sxm"}) {
    const auto sustained = [&](ProductScaling scaling) {
      return scaled_rate(gpu(name), scaling)->sustained_share;
    };
    EXPECT_LT(sustained(ProductScaling::kRow), sustained(ProductScaling::kTensor));
    EXPECT_LT(sustained(ProductScaling::kBlock), sustained(ProductScaling::kRow));
  }
  EXPECT_FALSE(scaled_rate(gpu("a100-sxm-80"), ProductScaling::kTensor));
}

// NVIDIA/TransformerEngine @d0067d0, docs/examples/gemm_profiling: a B300's twelve products of a
// layer, quantized before, take 7.161 ms with scales of 32 elements, and 3.764 in 4 bits.
TEST(ScaledRate, OfFourBitsIsThatOfEightTimesWhatABoardShowed) {
  const GpuRates rates(gpu("b300-sxm"), nullptr);
  const MatmulShape shape{.m = 15872, .n = 16384, .k = 4096};
  EXPECT_NEAR(rates.scaled_flops_per_second(shape, ProductScaling::kNvfp4) /
                  rates.scaled_flops_per_second(shape, ProductScaling::kMicro),
              7.161 / 3.764,
              0.03);
  EXPECT_EQ(
      GpuRates(gpu("h200-sxm"), nullptr).scaled_flops_per_second(shape, ProductScaling::kNvfp4), 0);
}

TEST(MatmulShare, FallsWhereRowsAreNoMultipleOf16Bytes) {
  const auto rate = [](int64_t n, bool is_misaligned) {
    return teraflops("a100-sxm-80", {.m = 12288, .n = n, .k = 768, .is_misaligned = is_misaligned});
  };
  EXPECT_LT(rate(50257, true), 0.6 * rate(50304, false));
  EXPECT_NEAR(rate(50257, false) / rate(50304, false), 1, 0.01);
}

// float8_experimental pull request 145, with pytorch/ao's benchmarks/float8/bench_padding.py, an
// H100 in bf16: 8,193 rows, an odd number, by 2,501, padded to 2,504, and 5,008: 502 TFLOPS, the
// copies that pad included.
TEST(MatmulShare, DoesNotFallWhereTheNumberOfRowsIsOdd) {
  EXPECT_GT(teraflops("h100-sxm", 8193, 5008, 2504), 502);
}

// Frankaaay/FastWAM @58d4b2e, an H200 in bf16: 72,000 x 3,072 by 14,336 in 64.0 ms with an operand
// off 16 bytes.
TEST(MatmulShare, IsThatOfTuringsKernelsOnHopperWhereRowsAreNoMultipleOf16Bytes) {
  const auto misaligned = [](int64_t m, int64_t n, int64_t k) {
    return MatmulShape{.m = m, .n = n, .k = k, .is_misaligned = true};
  };
  EXPECT_NEAR(teraflops("h200-sxm", misaligned(72000, 14337, 3072)) / 99.1, 1, 0.03);
  EXPECT_NEAR(teraflops("h100-sxm", misaligned(16384, 50257, 2048)) / 97.4, 1, 0.03);
  EXPECT_GT(teraflops("h100-sxm", 16384, 50304, 2048), 700);
}

TEST(MatmulShapeShare, LosesHalfWhenOneTileStartsASecondWave) {
  // 132 tiles of 256 x 128 fill an H100 once; the 133rd needs another wave.
  const MatmulShape full{.m = 256 * 132, .n = 128, .k = 1 << 20};
  const MatmulShape one_more{.m = 256 * 133, .n = 128, .k = 1 << 20};
  EXPECT_NEAR(matmul_shape_share(full, 132, 96), 1.0, 0.001);
  EXPECT_LT(matmul_shape_share(one_more, 132, 96), 0.9);
}

TEST(MatmulShapeShare, HalvesWhenTheLoopIsAsLongAsItsStartUp) {
  const MatmulShape shape{.m = 256 * 132, .n = 128, .k = 96};
  EXPECT_DOUBLE_EQ(matmul_shape_share(shape, 132, 96), 0.5);
}

// Microseconds on an H200, cuBLAS 13, random data; they set the time of a launch, and no other
// constant. Of the last, whose outputs are few, k is shared out.
TEST(MatmulShapeShare, OfSmallProductsOnHopperIsNearMeasured) {
  const auto microseconds = [](int64_t m, int64_t n, int64_t k) {
    constexpr double kLaunch = 1.8;
    return 2.0 * static_cast<double>(m * n * k) / (teraflops("h200-sxm", m, n, k) * 1e6) + kLaunch;
  };
  EXPECT_NEAR(microseconds(1024, 1024, 1024) / 6.2, 1, 0.15);
  EXPECT_NEAR(microseconds(2048, 2304, 768) / 14.5, 1, 0.20);
  EXPECT_NEAR(microseconds(8192, 3072, 768) / 58.1, 1, 0.10);
  EXPECT_NEAR(microseconds(1024, 1280, 8192) / 34.6, 1, 0.10);
  EXPECT_NEAR(microseconds(2304, 768, 4096) / 24.9, 1, 0.10);
  EXPECT_NEAR(microseconds(768, 768, 16384) / 37.0, 1, 0.30);
}

TEST(MatmulShapeShare, IsAShareForEveryShape) {
  for (const int64_t m : {1, 7, 64, 1000, 8192}) {
    for (const int64_t n : {1, 128, 53248}) {
      for (const int64_t k : {1, 100, 16384}) {
        const double share = matmul_shape_share({.m = m, .n = n, .k = k}, 132, 96);
        EXPECT_GT(share, 0) << m << " " << n << " " << k;
        EXPECT_LE(share, 1) << m << " " << n << " " << k;
      }
    }
  }
}

TEST(MatmulShapeShare, OfABatchFillsTheGpuTogether) {
  const MatmulShape one{.batch = 1, .m = 256, .n = 128, .k = 4096};
  const MatmulShape many{.batch = 132, .m = 256, .n = 128, .k = 4096};
  EXPECT_GT(matmul_shape_share(many, 132, 96), 20 * matmul_shape_share(one, 132, 96));
  EXPECT_LT(matmul_shape_share(many, 132, 96), 5 * matmul_shape_share(one, 132, 96, true));
}

TEST(MatmulRate, SaysWhenItIsAssumed) {
  EXPECT_EQ(matmul_rate(gpu("h100-sxm")).source, Source::kPublished);
  EXPECT_EQ(matmul_rate(gpu("l40s")).source, Source::kAssumed);
}

TEST(MatmulRate, IsTheShareOfTheGpuThatStandsForOneWithoutRates) {
  const Gpu &rubin = *find_gpu("vr200"), &gb300 = *find_gpu("gb300");
  EXPECT_EQ(matmul_rate(rubin).sustained_share, matmul_rate(gb300).sustained_share);
  EXPECT_EQ(matmul_rate(rubin).source, Source::kAssumed);
  for (const ProductScaling scaling : {ProductScaling::kTensor, ProductScaling::kNvfp4}) {
    EXPECT_EQ(scaled_rate(rubin, scaling)->best_share, scaled_rate(gb300, scaling)->best_share);
    EXPECT_EQ(scaled_rate(rubin, scaling)->source, Source::kAssumed);
  }
}

TEST(MatmulRate, IsAShareForEveryGpu) {
  for (const Gpu& each : gpus()) {
    const MatmulRate rate = matmul_rate(each);
    EXPECT_GT(rate.sustained_share, 0.4) << each.id;
    EXPECT_LE(rate.sustained_share, rate.best_share) << each.id;
    EXPECT_LT(rate.best_share, 1) << each.id;
  }
}

}  // namespace
}  // namespace estimator
