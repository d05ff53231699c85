#include "estimator/compute/kernel_price.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;

OperatorRecord kernel(const char* name, const char* dtype, Shapes shapes, double bytes) {
  OperatorRecord record;
  record.name = name;
  record.dtype = dtype;
  record.shapes = std::move(shapes);
  record.bytes = bytes;
  record.count = 1;
  return record;
}

ComputeTarget target_of(const Gpu& gpu, int64_t experts) {
  return {.gpu = gpu, .experts = experts};
}

// Eight products of 512 rows fill what one leaves idle of 132 multiprocessors.
TEST(KernelPrice, RunsTheProductsOfARanksExpertsSideBySide) {
  const Gpu& gpu = *find_gpu("h100-sxm");
  const ComputeTarget target = target_of(gpu, 8);
  const GpuRates rates = target.rates();
  const auto product = [](const char* name) {
    OperatorRecord record = kernel(name, "BFloat16", {{512, 2048}, {2048, 1024}}, 2.0 * 512 * 3072);
    record.flops = 2.0 * 512 * 2048 * 1024;
    return record;
  };
  const OperatorRecord together = product("te::grouped_mm"), alone = product("aten::mm");
  EXPECT_LT(kernel_price(together, rates, target).seconds,
            0.8 * kernel_price(alone, rates, target).seconds);
}

// Python and cuBLAS take as long for each expert; what quantizes is C++ alone.
TEST(KernelPrice, IssuesProductsByCallsAndALibrarysKernelsByTheirLaunchAlone) {
  const LaunchCost launch{.host_call_seconds = 16, .host_loop_seconds = 5};
  const auto issued = [&](const char* name) {
    return issue_seconds(kernel(name, "BFloat16", {{512, 2048}, {2048, 1024}}, 1), launch);
  };
  EXPECT_EQ(issued("te::grouped_mm"), 16);
  EXPECT_EQ(issued("aten::mm"), 16);
  EXPECT_EQ(issued("aten::copy_"), 16);
  EXPECT_EQ(issued("te::quantize"), 5);
}

// No rate of grouped products in 8 bits is published. They are priced as one product of all rows,
// which takes less than one after the other, and less than in 16 bits.
TEST(KernelPrice, OfGroupedProductsInEightBitsIsLowerThanInSixteen) {
  const ComputeTarget target = target_of(*find_gpu("h100-sxm"), 8);
  const GpuRates rates = target.rates();
  const auto product = [](const char* name, const char* dtype) {
    OperatorRecord record = kernel(name, dtype, {{512, 2048}, {2048, 1024}, {1}, {1}}, 2.0 * 512);
    record.flops = 2.0 * 512 * 2048 * 1024;
    return record;
  };
  const double together =
      kernel_price(product("te::grouped_scaled_mm", "Float8_e4m3fn"), rates, target).seconds;
  EXPECT_LT(together,
            kernel_price(product("aten::_scaled_mm", "Float8_e4m3fn"), rates, target).seconds);
  OperatorRecord sixteen_bits = product("te::grouped_mm", "BFloat16");
  sixteen_bits.shapes.resize(2);
  EXPECT_LT(together, 0.8 * kernel_price(sixteen_bits, rates, target).seconds);
}

double share_of(const OperatorRecord& slow, std::optional<Framework> framework, const Gpu& gpu) {
  return memory_bound(slow, framework, gpu).memory_share;
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
TEST(KernelPrice, OfGroupedProductsIsAsPublished) {
  const Gpu& gpu = *find_gpu("b200-sxm");
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
    OperatorRecord product = weight_gradient ? kernel("te::grouped_addmm", "Float", shapes, bytes)
                                             : kernel("te::grouped_mm", "BFloat16", shapes, bytes);
    product.flops = 2.0 * static_cast<double>(m * n * k);
    const ComputeTarget target = target_of(gpu, experts);
    const double published = product.flops / (share * 2250e12);
    EXPECT_NEAR(kernel_price(product, target.rates(), target).seconds / published, 1, 0.2)
        << m << " rows" << (weight_gradient ? ", weight gradient" : "");
  }
}

// nanotron's runs are of an older PyTorch.
TEST(KernelPrice, OfViewsIsThatOfAPartOfTheMemorysRate) {
  const Gpu& h200 = *find_gpu("h200-sxm");
  OperatorRecord silu = kernel("aten::silu", "BFloat16", {{4096, 1, 14336}}, 1e9);
  EXPECT_DOUBLE_EQ(share_of(silu, Framework::kTorchtitan, h200), 1);
  silu.is_strided = true;
  EXPECT_DOUBLE_EQ(share_of(silu, Framework::kNanotron, h200), 0.35);
  EXPECT_DOUBLE_EQ(share_of(silu, std::nullopt, h200), 0.37);
  silu.dtype = "Float";
  EXPECT_DOUBLE_EQ(share_of(silu, Framework::kNanotron, h200), 0.46);
  EXPECT_DOUBLE_EQ(share_of(silu, Framework::kTorchtitan, h200), 0.65);
  EXPECT_DOUBLE_EQ(share_of(silu, std::nullopt, h200), 0.65);

  const ComputeTarget target = target_of(h200, 1);
  const double slow = kernel_price(silu, target.rates(), target).seconds;
  silu.is_strided = false;
  const double launch = target.rates().launch().kernel_seconds;
  const double fast = kernel_price(silu, target.rates(), target).seconds;
  EXPECT_NEAR((fast - launch) / (slow - launch), 0.65, 1e-9);
}

// Measured on an H200: 2.05 TB/s where the gradients become fp32, 3.7 where they stay as they are.
TEST(KernelPrice, DependsOnTheKernelThatWasLaunched) {
  const Gpu& h200 = *find_gpu("h200-sxm");
  const OperatorRecord cat = kernel("aten::_chunk_cat", "BFloat16", {{1 << 27}}, 1e9);
  const auto share = [&](const char* launched) {
    return memory_bound(cat, std::nullopt, h200, launched).memory_share;
  };
  EXPECT_DOUBLE_EQ(share("at::native::detail::chunk_cat_cuda_kernel<float, c10::BFloat16>"), 0.52);
  EXPECT_DOUBLE_EQ(share("at::native::detail::chunk_cat_cuda_kernel<char, char>"), 1);
  EXPECT_DOUBLE_EQ(share(""), 1) << "it is not known";
}

// The share of streams that others measured: pytorch pull request 195542 on an A100; NVIDIA's
// cudnn-frontend, benchmark/norms, on a GB200, whose streams are taken to reach 0.85.
TEST(KernelPrice, OnOtherGpusIsNearWhatOthersMeasured) {
  const auto share = [](const char* name, const char* dtype, const char* gpu) {
    OperatorRecord slow = kernel(name, dtype, {{1 << 14, 4096}}, 1e9);
    if (slow.name == "aten::copy_") slow.other_dtype = "BFloat16";
    return share_of(slow, std::nullopt, *find_gpu(gpu));
  };
  EXPECT_NEAR(share("aten::copy_", "Float", "a100-sxm-80"), 1.11 / 1.70, 0.03);
  EXPECT_NEAR(share("aten::_fused_rms_norm", "BFloat16", "gb200"), 0.565 / 0.85, 0.03);
  EXPECT_NEAR(share("aten::_fused_rms_norm_backward", "BFloat16", "gb200"), 0.258 / 0.85, 0.03);
}

TEST(KernelPrice, OfConversionsDependsOnTheirDirection) {
  const Gpu& h200 = *find_gpu("h200-sxm");
  OperatorRecord copy = kernel("aten::copy_", "Float", {{1024}, {1024}}, 6144);
  EXPECT_DOUBLE_EQ(share_of(copy, Framework::kPlain, h200), 1);
  copy.other_dtype = "BFloat16";
  EXPECT_DOUBLE_EQ(share_of(copy, Framework::kPlain, h200), 0.51);
  EXPECT_DOUBLE_EQ(share_of(copy, Framework::kNanotron, h200), 0.65);
  std::swap(copy.dtype, copy.other_dtype);
  EXPECT_DOUBLE_EQ(share_of(copy, Framework::kPlain, h200), 1);
  EXPECT_DOUBLE_EQ(share_of(copy, Framework::kNanotron, h200), 0.8);
}

TEST(KernelPrice, OfNanotronsConcatenationIsThatOfItsPytorch) {
  const Gpu& h100 = *find_gpu("h100-sxm");
  const OperatorRecord cat = kernel("aten::cat", "BFloat16", {{1 << 20}}, 1 << 22);
  EXPECT_DOUBLE_EQ(share_of(cat, Framework::kNanotron, h100), 0.33);
  EXPECT_DOUBLE_EQ(share_of(cat, Framework::kMegatronLm, h100), 1);
}

TEST(KernelPrice, OfPytorchsNormIsNotThatOfTransformerEngine) {
  const Gpu& h200 = *find_gpu("h200-sxm");
  const OperatorRecord forward = kernel("aten::_fused_rms_norm", "BFloat16", {{1 << 24}}, 1 << 26);
  OperatorRecord backward = forward;
  backward.name = "aten::_fused_rms_norm_backward";
  EXPECT_DOUBLE_EQ(share_of(forward, Framework::kTorchtitan, h200), 0.72);
  EXPECT_DOUBLE_EQ(share_of(backward, Framework::kTorchtitan, h200), 0.39);
  EXPECT_DOUBLE_EQ(share_of(backward, std::nullopt, h200), 0.39);
  EXPECT_DOUBLE_EQ(share_of(backward, Framework::kMegatronLm, h200), 1);
}

// Microseconds on an H200 (torch 2.11), bf16 but where another type is said.
TEST(KernelPrice, OfPytorchsNormsDependsOnTheirWidth) {
  const GpuRates rates(*find_gpu("h200-sxm"), nullptr, {}, 1, Priced::kKernels);
  const auto microseconds = [&](const char* name, const char* dtype, int64_t rows, int64_t width) {
    const double tensors = std::string(name).ends_with("backward") ? 3 : 2;
    const double bytes =
        tensors * (std::string(dtype) == "Float" ? 4 : 2) * static_cast<double>(rows * width);
    const OperatorRecord norm = kernel(name, dtype, {{rows, width}}, bytes);
    const double share = share_of(norm, std::nullopt, *find_gpu("h200-sxm"));
    return operator_price(norm, rates, Dtype::kBf16, share).seconds * 1e6;
  };
  constexpr const char* kNorm = "aten::native_layer_norm";
  constexpr const char* kNormBackward = "aten::native_layer_norm_backward";
  EXPECT_NEAR(microseconds(kNorm, "BFloat16", 12288, 768) / 27.7, 1, 0.20);
  EXPECT_NEAR(microseconds(kNormBackward, "BFloat16", 12288, 768) / 79.9, 1, 0.20);
  EXPECT_NEAR(microseconds(kNormBackward, "Float", 12288, 768) / 90.7, 1, 0.20);
  EXPECT_NEAR(microseconds(kNormBackward, "BFloat16", 8192, 4096) / 119.3, 1, 0.20);
  EXPECT_NEAR(
      microseconds("aten::_fused_rms_norm_backward", "BFloat16", 4096, 8192) / 131.6, 1, 0.20);
  EXPECT_NEAR(microseconds(kNorm, "BFloat16", 524288, 128) / 559.3, 1, 0.25);
}

// One block for each channel: of 64 images of 64 x 112 x 112 an H200 took 460 us in fp32 and 1,185
// backward; with 1,024 channels of 14 x 14 the memory bounds it.
TEST(KernelPrice, OfABatchNormOfFewChannelsIsThatOfOneBlock) {
  const auto seconds = [](const char* name, const char* launched, int64_t channels, int64_t side) {
    const OperatorRecord norm = kernel(name, "Float", {{64, channels, side, side}, {channels}}, 0);
    return memory_bound(norm, std::nullopt, *find_gpu("h200-sxm"), launched).least_seconds;
  };
  const char* const forward = "aten::cudnn_batch_norm";
  EXPECT_NEAR(seconds(forward, "cudnn::bn_fw_tr_1C11_kernel_NCHW", 64, 112), 460e-6, 5e-6);
  EXPECT_NEAR(seconds("aten::cudnn_batch_norm_backward", "cudnn::bn_bw_1C11_kernel_new", 64, 112),
              1185e-6,
              10e-6);
  EXPECT_LT(seconds(forward, "cudnn::bn_fw_tr_1C11_kernel_NCHW", 1024, 14), 10e-6);
  EXPECT_EQ(seconds(forward, "cudnn::batchnorm_fwtr_nhwc_semiPersist", 64, 112), 0);
}

}  // namespace
}  // namespace estimator
