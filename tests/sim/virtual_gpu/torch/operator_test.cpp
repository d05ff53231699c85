#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/erfinv.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sort.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "torch_process.h"

/// PyTorch's operators on the virtual GPU: what they allocate, launch and refuse.
namespace virtual_gpu {
namespace {

/// What stays allocated after a product of two 64 x 64 matrices, beside the three.
int64_t workspace_bytes_of_a_product() {
  const at::Tensor a = at::empty({64, 64}, kFloat);  // 16,384 B
  const at::Tensor product = at::mm(a, a);
  return allocated_bytes() - 2 * 16384;
}

TEST(TorchOperator, TakesThe32MiBWorkspaceOfCublasOnCapability90) {
  in_torch_process(h100(), [] { EXPECT_EQ(workspace_bytes_of_a_product(), 32 * kMiB); });
}

TEST(TorchOperator, TakesTheSmallerWorkspaceOfCublasElsewhere) {
  in_torch_process(a100(), [] { EXPECT_EQ(workspace_bytes_of_a_product(), 8519680); });
}

TEST(TorchOperator, ProductsAreRecordedWithTheirShape) {
  in_torch_process(h100(), [] {
    const at::Tensor input = at::empty({256, 512}, kBfloat16);
    const at::Tensor weight = at::empty({1536, 512}, kBfloat16);
    at::linear(input, weight);
    // Column-major: the transposed result is 1536 x 256.
    EXPECT_EQ(gemms_by_shape(), (std::map<GemmKey, uint64_t>{{{1536, 256, 512, 1}, 1}}));
  });
}

TEST(TorchOperator, ProductsWithABiasAreRecordedToo) {
  in_torch_process(h100(), [] {  // these go to cuBLASLt
    const at::Tensor input = at::empty({256, 512}, kBfloat16);
    const at::Tensor weight = at::empty({1536, 512}, kBfloat16);
    at::linear(input, weight, at::empty({1536}, kBfloat16));
    EXPECT_EQ(gemms_by_shape(), (std::map<GemmKey, uint64_t>{{{1536, 256, 512, 1}, 1}}));
  });
}

TEST(TorchOperator, LaunchesAreRecordedByKernel) {
  in_torch_process(h100(), [] {
    at::Tensor tensor = at::empty({1000}, kFloat);
    const uint64_t before = kernel_launches();
    tensor.fill_(1);
    tensor.add_(1);
    EXPECT_EQ(kernel_launches() - before, 2u);
    uint64_t fills = 0;
    for (const auto& [name, launches] : launches_by_kernel()) {
      if (name.find("FillFunctor") != std::string::npos) fills += launches;
    }
    EXPECT_EQ(fills, 1u);
  });
}

TEST(TorchOperator, FlashAttentionKeepsOutputLogSumExpAndTwoScalars) {
  in_torch_process(h100(), [] {
    at::globalContext().setSDPUseMath(false);
    at::globalContext().setSDPUseMemEfficient(false);
    const at::Tensor q = at::empty({1, 8, 1024, 64}, kBfloat16).requires_grad_();  // 1 MiB
    const int64_t before = allocated_bytes();
    const at::Tensor output = at::scaled_dot_product_attention(q, q, q, {}, 0.0, true);
    // Output like q; fp32 log-sum-exp for each of 8 heads and 1,024 rows; rng state and seed.
    EXPECT_EQ(allocated_bytes() - before, kMiB + 4 * 8 * 1024 + 2 * 512);
  });
}

TEST(TorchOperator, ReadsZeroFromTheDevice) {
  in_torch_process(h100(), [] { EXPECT_EQ(at::empty({1}, kFloat).fill_(7).item<float>(), 0); });
}

TEST(TorchOperator, ConvolutionByCudnnAllocatesItsResultAndAWorkspace) {
  in_torch_process(h100(), [] {
    const auto options = kFloat.dtype(at::kBFloat16);
    const at::Tensor image = at::empty({64, 64, 56, 56}, options);
    const at::Tensor weight = at::empty({64, 64, 3, 3}, options);
    const int64_t before = allocated_bytes();
    const at::Tensor result =
        at::convolution(image, weight, {}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1);
    EXPECT_EQ(result.sizes(), image.sizes());
    constexpr int64_t kImageBytes = 2 * 64 * 64 * 56 * 56;
    EXPECT_EQ(allocated_bytes() - before, kImageBytes);
    // The workspace holds both images and the filter in the layout of tensor cores: 51,454,083
    // bytes. Less than 1 MiB is left of its segment, so that it is not split.
    EXPECT_EQ(peak_bytes() - before, kImageBytes + 50 * kMiB);
  });
}

TEST(TorchOperator, RunsCodeOfAnOlderMinorVersion) {
  // The wheel has code for 8.6, not for 8.9. The sort (CUB) looks for the version it was told.
  VirtualGpuSpec l40s = a100();
  l40s.capability_minor = 9;
  in_torch_process(
      l40s, [] { EXPECT_EQ(std::get<0>(at::sort(at::empty({100000}, kFloat))).numel(), 100000); });
}

TEST(TorchOperator, HasNoKernelsForAGpuThatTheWheelWasNotBuiltFor) {
  VirtualGpuSpec v100 = a100();
  v100.capability_major = 7;
  in_torch_process(v100, [] {
    try {
      at::empty({10}, kFloat).fill_(1);
      ADD_FAILURE() << "the kernel was launched";
    } catch (const c10::Error& error) {
      EXPECT_NE(std::string(error.what()).find("no kernel image is available"), std::string::npos)
          << error.what();
    }
  });
}

TEST(TorchOperator, CompiledAtRunTimeIsLaunched) {
  in_torch_process(h100(),
                   [] {
                     at::Tensor tensor = at::empty({1000}, kFloat);
                     const uint64_t before = kernel_launches();
                     tensor.erfinv_();
                     EXPECT_EQ(kernel_launches() - before, 1u);
                     EXPECT_EQ(launches_by_kernel().count("erfinv_kernel_vectorized4_kernel"), 1u);
                   },
                   // Without this a fake cubin would land in the user's cache of kernels.
                   {{"USE_PYTORCH_KERNEL_CACHE", "0"}});
}

}  // namespace
}  // namespace virtual_gpu
