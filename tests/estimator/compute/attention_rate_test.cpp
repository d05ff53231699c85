#include "estimator/compute/attention_rate.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

/// As the published benches call it: 16,384 tokens, 2,048 wide.
double teraflops(
    const char* name, Attention attention, AttentionPass pass, int64_t width, int64_t sequence) {
  const AttentionShape shape{.pass = pass,
                             .batch = std::max<int64_t>(1, 16384 / sequence),
                             .heads = 2048 / width,
                             .sequence = sequence,
                             .head_width = width};
  return attention_rate(*find_gpu(name), shape, {attention}).flops_per_second / 1e12;
}

constexpr auto kForward = AttentionPass::kForward;

// Figures of Dao-AILab/flash-attention @0251105, causal, head width 128, 8,192 tokens.
TEST(AttentionRate, IsThatOfTheKernel) {
  EXPECT_NEAR(teraflops("h100-sxm", Attention::kFused, kForward, 128, 8192), 529, 1e-6);
  EXPECT_NEAR(teraflops("h100-sxm", Attention::kFlash, kForward, 128, 8192), 308, 1e-6);
  EXPECT_NEAR(teraflops("a100-sxm-80", Attention::kFlash, kForward, 64, 4096), 156, 1e-6);
}

// PyTorch's posts: on A100 0.90 and 0.85 of FlashAttention-2, on H100 1.25 and 1.03. On others
// A100's.
TEST(AttentionRate, OfFlexAttentionIsAShareOfFlashAttentions) {
  const auto share = [](const char* gpu, AttentionPass pass) {
    const std::string end = pass == AttentionPass::kBackward ? "_backward" : "";
    AttentionShape shape{.pass = pass, .heads = 16, .sequence = 4096, .head_width = 128};
    const AttentionKernel by_call{.by_call = true};
    shape.operator_name = "aten::_scaled_dot_product_flash_attention" + end;
    const double flash = attention_rate(*find_gpu(gpu), shape, by_call).flops_per_second;
    shape.operator_name = "higher_order::flex_attention" + end;
    return attention_rate(*find_gpu(gpu), shape, by_call).flops_per_second / flash;
  };
  EXPECT_NEAR(share("a100-sxm-80", AttentionPass::kForward), 0.90, 1e-9);
  EXPECT_NEAR(share("a100-sxm-80", AttentionPass::kBackward), 0.85, 1e-9);
  EXPECT_NEAR(share("h200-sxm", AttentionPass::kForward), 1.25, 1e-9);
  EXPECT_NEAR(share("h100-sxm", AttentionPass::kBackward), 1.03, 1e-9);
  EXPECT_NEAR(share("l40s", AttentionPass::kForward), 0.90, 1e-9);
}

// Three products of TF32, whose peak is half of bf16's; before Ampere the fp32 units (15.7 of 125).
TEST(AttentionRate, OfFp32IsThatOfThreeProductsOfTf32) {
  const auto share = [](const char* name) {
    const Gpu& gpu = *find_gpu(name);
    AttentionShape shape{.heads = 16, .sequence = 1024, .head_width = 64};
    const double halves = attention_rate(gpu, shape).flops_per_second;
    shape.is_fp32 = true;
    EXPECT_EQ(attention_rate(gpu, shape).source, Source::kAssumed);
    return attention_rate(gpu, shape).flops_per_second / halves;
  };
  EXPECT_NEAR(share("h100-sxm"), 1.0 / 6, 0.001);
  EXPECT_NEAR(share("a100-sxm-80"), 1.0 / 6, 0.001);
  EXPECT_NEAR(share("v100-sxm2-16"), 15.7 / 125, 0.001);
}

// Measured on an H200 without a mask: 8 x 16 heads of 64 elements and 1,024 tokens, in fp32 1.02 ms
// forward and 2.46 backward; 64 x 12 of 197 tokens in bf16 0.114 ms, by flash attention 0.063.
TEST(AttentionRate, OfAnOperatorOfAProgramIsWhatItWasMeasuredToReach) {
  const auto teraflops_of = [](const char* name, AttentionShape shape) {
    shape.masked = false;
    shape.head_width = 64;
    shape.operator_name = name;
    const AttentionKernel kernel{.by_call = true};
    return attention_rate(*find_gpu("h200-sxm"), shape, kernel).flops_per_second / 1e12;
  };
  constexpr const char* kEfficient = "aten::_scaled_dot_product_efficient_attention";
  constexpr const char* kEfficientBackward =
      "aten::_scaled_dot_product_efficient_attention_backward";
  AttentionShape fp32{.batch = 8, .heads = 16, .sequence = 1024, .is_fp32 = true};
  EXPECT_NEAR(teraflops_of(kEfficient, fp32) / 33.6, 1, 0.05);
  fp32.pass = AttentionPass::kBackward;
  EXPECT_NEAR(teraflops_of(kEfficientBackward, fp32) / 35.0, 1, 0.05);
  const AttentionShape image{.batch = 64, .heads = 12, .sequence = 197};
  EXPECT_NEAR(teraflops_of(kEfficient, image) / 67, 1, 0.05);
  EXPECT_NEAR(teraflops_of("aten::_scaled_dot_product_flash_attention", image) / 121, 1, 0.05);
}

TEST(AttentionRate, LiesBetweenMeasuredSequencesAndStaysBeyondThem) {
  const auto at = [](int64_t sequence) {
    return teraflops("a100-sxm-80", Attention::kFlash, kForward, 128, sequence);
  };
  EXPECT_GT(at(6000), 173);
  EXPECT_LT(at(6000), 182);
  EXPECT_NEAR(at(131072), 189, 1e-6);
  EXPECT_NEAR(at(1), 99, 1e-6);
}

// Figures of Dao-AILab/flash-attention @0251105, causal, 2,048 tokens, of both passes together: 2
// and 5 products. Forward over backward: arXiv 2307.08691, section 1, the middles of 30-50 and
// 25-35 %.
TEST(AttentionRate, OfTheFirstFlashAttentionIsItsOwn) {
  const auto first = [](const char* name, AttentionPass pass, int64_t width) {
    const AttentionShape shape{
        .pass = pass, .batch = 8, .heads = 2048 / width, .sequence = 2048, .head_width = width};
    return attention_rate(*find_gpu(name), shape, {Attention::kFlash1}).flops_per_second / 1e12;
  };
  const auto together = [&](const char* name, int64_t width) {
    return 7 /
           (2 / first(name, kForward, width) + 5 / first(name, AttentionPass::kBackward, width));
  };
  EXPECT_NEAR(together("a100-sxm-80", 64), 77, 0.1);
  EXPECT_NEAR(together("a100-sxm-40", 128), 69, 0.1);
  EXPECT_NEAR(together("h100-sxm", 64), 136, 0.1);
  EXPECT_NEAR(
      first("a100-sxm-80", kForward, 64) / first("a100-sxm-80", AttentionPass::kBackward, 64),
      4.0 / 3,
      0.01);
  EXPECT_NEAR(
      teraflops("a100-sxm-80", Attention::kFlash, kForward, 64, 2048), 140, 1e-6);  // second
}

// MooreThreads/SimuMax @4dcaae5: one sample of 4,096 tokens, head width 128; their FLOPs count the
// whole square, half of 2250 x the share is causal.
TEST(AttentionRate, FallsWithFewHeadsAsMeasuredOnB200) {
  const auto share = [](AttentionPass pass, int64_t heads) {
    const AttentionShape shape{.pass = pass, .batch = 1, .heads = heads, .sequence = 4096};
    const Gpu& b200 = *find_gpu("b200-sxm");
    return attention_rate(b200, shape, {Attention::kFused}).flops_per_second / (2250e12 / 2);
  };
  EXPECT_NEAR(share(kForward, 128) / 0.9967, 1, 0.02);
  EXPECT_NEAR(share(kForward, 64) / 0.8715, 1, 0.05);
  EXPECT_NEAR(share(kForward, 16) / 0.5783, 1, 0.15);
  EXPECT_NEAR(share(kForward, 8) / 0.3102, 1, 0.05);
  EXPECT_NEAR(share(AttentionPass::kBackward, 128) / 0.8316, 1, 0.02);
  EXPECT_NEAR(share(AttentionPass::kBackward, 32) / 0.7963, 1, 0.10);
}

// NVIDIA/cudnn-frontend @3929da2, two samples of 64 heads, causal (cuDNN 9.22); @fb682ce, one
// sample of them (9.19), which set no rate.
TEST(AttentionRate, OfBlackwellUltraIsAsMeasured) {
  const auto teraflops = [](const char* name, AttentionPass pass, int64_t batch, int64_t sequence) {
    const AttentionShape shape{.pass = pass, .batch = batch, .heads = 64, .sequence = sequence};
    return attention_rate(*find_gpu(name), shape, {Attention::kFused}).flops_per_second / 1e12;
  };
  constexpr auto kBackward = AttentionPass::kBackward;
  EXPECT_NEAR(teraflops("gb300", kForward, 2, 8192), 1856, 1);
  EXPECT_NEAR(teraflops("gb300", kBackward, 2, 8192), 1435, 1);
  EXPECT_NEAR(teraflops("gb200", kForward, 2, 8192), 1574, 1);
  EXPECT_NEAR(teraflops("gb200", kBackward, 2, 8192), 1332, 1);
  EXPECT_NEAR(teraflops("gb300", kForward, 1, 8192) / 1887, 1, 0.05);
  EXPECT_NEAR(teraflops("gb300", kBackward, 1, 8192) / 1385, 1, 0.05);
  EXPECT_NEAR(teraflops("gb300", kForward, 1, 2048) / 1266, 1, 0.05);
  EXPECT_NEAR(teraflops("gb200", kBackward, 1, 2048) / 836, 1, 0.05);
}

// NVIDIA/cudnn-frontend @3929da2, MXFP8, causal: two samples of 64 heads of llama3.1, and of 128 of
// dsv3.
TEST(AttentionRate, InEightBitsIsAsMeasured) {
  const auto teraflops = [](const char* name, AttentionShape shape) {
    shape.is_quantized = true;
    shape.batch = 2;
    shape.sequence = 8192;
    return attention_rate(*find_gpu(name), shape, {Attention::kFused}).flops_per_second / 1e12;
  };
  constexpr auto kBackward = AttentionPass::kBackward;
  const AttentionShape llama{.pass = kForward, .heads = 64};
  const AttentionShape latent{
      .pass = kBackward, .heads = 128, .head_width = 192, .value_width = 128};
  EXPECT_NEAR(teraflops("gb200", llama), 1902, 1);
  EXPECT_NEAR(teraflops("gb300", llama), 2570, 1);
  EXPECT_NEAR(teraflops("gb200", latent), 1494, 1);
  EXPECT_NEAR(teraflops("gb300", latent), 1780, 1);
  EXPECT_GT(teraflops("vr200", llama), teraflops("gb300", llama));
  EXPECT_GT(teraflops("h100-sxm", llama), 0);  // whose rate in 8 bits nobody published
}

// meta-pytorch/tritonbench pull request 171; Dao-AILab/flash-attention issue 1589 (64 wide).
TEST(AttentionRate, OfFlashAttentionOnBlackwellIsThatOfItsSecondVersion) {
  const Gpu& b200 = *find_gpu("b200-sxm");
  const auto teraflops = [&](AttentionPass pass, Attention attention) {
    const AttentionShape shape{.pass = pass, .heads = 128, .sequence = 8192};
    return attention_rate(b200, shape, {attention}).flops_per_second / 1e12;
  };
  EXPECT_NEAR(teraflops(kForward, Attention::kFlash), 362, 1e-6);
  EXPECT_NEAR(teraflops(AttentionPass::kBackward, Attention::kFlash), 329, 1e-6);
  EXPECT_GT(teraflops(kForward, Attention::kFused), 1000);
}

TEST(AttentionRate, IsTheShareOfTheGpuThatStandsForOneWithoutRates) {
  const AttentionShape shape{.pass = kForward, .heads = 32, .sequence = 8192};
  const AttentionKernel fused{Attention::kFused};
  const AttentionRate rubin = attention_rate(*find_gpu("vr200"), shape, fused);
  const AttentionRate gb300 = attention_rate(*find_gpu("gb300"), shape, fused);
  EXPECT_NEAR(rubin.flops_per_second / gb300.flops_per_second, 4000.0 / 2500, 0.1);
  EXPECT_EQ(rubin.source, Source::kAssumed);
  EXPECT_NE(rubin.note.find("NVIDIA GB300's share of peak"), std::string::npos);
}

/// DeepSeek's heads: keys of 192, values of 128.
AttentionShape latent_shape(AttentionPass pass, int64_t heads) {
  return {.pass = pass, .heads = heads, .sequence = 4096, .head_width = 192, .value_width = 128};
}

// NVIDIA/cudnn-frontend @3929da2, dsv3 on H200: 1.148 ms for 128 heads of 4,096 tokens.
TEST(AttentionRate, OfLatentAttentionIsThatOfItsOwnWidths) {
  const Gpu& h200 = *find_gpu("h200-sxm");
  const AttentionRate rate = attention_rate(h200, latent_shape(kForward, 128), {Attention::kFused});
  const double flops = 2.0 * 128 * 4096 * 4096 * (192 + 128) / 2;
  EXPECT_NEAR(flops / rate.flops_per_second / 1.148e-3, 1, 0.005);
  EXPECT_EQ(rate.source, Source::kPublished);
}

// MooreThreads/SimuMax @4dcaae5, half of 2250 x the share, as above; their backward counts 2.5
// forwards, five products of which three are as wide as keys are 2.6.
TEST(AttentionRate, OfLatentAttentionOnB200IsAsMeasured) {
  const auto share = [](AttentionPass pass, int64_t heads) {
    return attention_rate(*find_gpu("b200-sxm"), latent_shape(pass, heads), {Attention::kFused})
               .flops_per_second /
           (2250e12 / 2);
  };
  EXPECT_NEAR(share(kForward, 128) / 0.8306, 1, 0.07);
  EXPECT_NEAR(share(kForward, 64) / 0.8853, 1, 0.07);
  EXPECT_NEAR(share(kForward, 16) / 0.6368, 1, 0.07);
  EXPECT_NEAR(share(AttentionPass::kBackward, 128) / (0.6426 * 2.6 / 2.5), 1, 0.03);
  EXPECT_NEAR(share(AttentionPass::kBackward, 16) / (0.5929 * 2.6 / 2.5), 1, 0.03);
}

TEST(AttentionRate, OfOtherWidthsSaysOfWhichItIs) {
  const Gpu& a100 = *find_gpu("a100-sxm-80");
  const AttentionRate rate = attention_rate(a100, latent_shape(kForward, 128), {Attention::kFused});
  EXPECT_EQ(rate.source, Source::kAssumed);
  EXPECT_NE(rate.note.find("measured with keys 128 wide and values 128 wide"), std::string::npos)
      << rate.note;
}

TEST(AttentionRate, OfOneWidthIsNeverThatOfTwo) {
  const AttentionShape wide{.heads = 128, .sequence = 4096, .head_width = 256};
  const AttentionRate rate = attention_rate(*find_gpu("h100-sxm"), wide, {Attention::kFused});
  EXPECT_NEAR(rate.flops_per_second / 1e12, 518, 1e-6);
}

TEST(AttentionRate, SaysWhenItIsAssumed) {
  const auto rate = [](const char* name) {
    return attention_rate(*find_gpu(name), {.sequence = 8192});
  };
  EXPECT_EQ(rate("h100-sxm").source, Source::kPublished);
  EXPECT_EQ(rate("l40s").source, Source::kAssumed);
  EXPECT_NEAR(rate("l40s").flops_per_second / 362e12, 182.0 / 312, 1e-9);  // A100's share
}

TEST(AttentionRate, IsBelowPeakForEveryGpu) {
  for (const Gpu& each : gpus()) {
    for (const Attention attention : {Attention::kFlash1, Attention::kFlash, Attention::kFused}) {
      for (const AttentionPass pass : {kForward, AttentionPass::kBackward}) {
        const AttentionShape shape{.pass = pass, .heads = 64, .sequence = 8192};
        const double share = attention_rate(each, shape, {attention}).flops_per_second /
                             each.peak_flops(Dtype::kFp16);
        EXPECT_GT(share, 0.1) << each.id;
        EXPECT_LT(share, 1) << each.id;
      }
    }
  }
}

TEST(AttentionRate, OfADeterministicBackwardIsLowerAndItsForwardIsNot) {
  const auto share = [](const char* name, Attention attention, AttentionPass pass) {
    const AttentionShape shape{.pass = pass, .heads = 64, .sequence = 8192};
    const auto rate = [&](bool deterministic) {
      return attention_rate(*find_gpu(name), shape, {attention, deterministic}).flops_per_second;
    };
    return rate(true) / rate(false);
  };
  constexpr auto kBackward = AttentionPass::kBackward;
  // NVIDIA/cudnn-frontend @3929da2: 4.127 and 4.754 ms on GB200.
  EXPECT_NEAR(share("gb200", Attention::kFused, kBackward), 4.127 / 4.754, 1e-3);
  // Dao-AILab/flash-attention pull request 1893, against both passes at 308 and forward at 306.2.
  EXPECT_NEAR(share("h100-sxm", Attention::kFlash, kBackward), 166.0 / 308.8, 1e-3);
  EXPECT_EQ(share("h100-sxm", Attention::kFlash, kForward), 1);
}

TEST(AttentionRate, OfADeterministicBackwardSaysWhereItIsAssumed) {
  const AttentionShape backward{.pass = AttentionPass::kBackward, .sequence = 8192};
  const AttentionKernel kernel{Attention::kFlash, /*deterministic=*/true};
  EXPECT_EQ(attention_rate(*find_gpu("h100-sxm"), backward, kernel).source, Source::kPublished);
  const AttentionRate of_a100 = attention_rate(*find_gpu("a100-sxm-80"), backward, kernel);
  EXPECT_EQ(of_a100.source, Source::kAssumed);
  EXPECT_NE(of_a100.note.find("of another kernel or GPU"), std::string::npos) << of_a100.note;
}

TEST(AttentionRate, DropoutOfAPlanTakesLongerByTheKernelsOwnFactor) {
  const auto slowdown = [](Attention attention, AttentionPass pass) {
    const AttentionShape shape{.pass = pass, .sequence = 2048};
    const Gpu& gpu = *find_gpu("h100-sxm");
    const AttentionKernel with{.attention = attention, .dropout = true};
    return attention_rate(gpu, shape, {.attention = attention}).flops_per_second /
           attention_rate(gpu, shape, with).flops_per_second;
  };
  EXPECT_DOUBLE_EQ(slowdown(Attention::kFlash, AttentionPass::kForward), 1.3);
  EXPECT_DOUBLE_EQ(slowdown(Attention::kFlash, AttentionPass::kBackward), 1.13);
  EXPECT_DOUBLE_EQ(slowdown(Attention::kFused, AttentionPass::kForward), 2.3);
  EXPECT_DOUBLE_EQ(slowdown(Attention::kFused, AttentionPass::kBackward), 1.3);
}

}  // namespace
}  // namespace estimator
