#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "torch_process.h"

/// A training step of a small transformer layer, forward and backward in two threads.
namespace virtual_gpu {
namespace {

constexpr int64_t kSequence = 512;
constexpr int64_t kHidden = 256;
constexpr int64_t kHeads = 4;

struct Layer {
  at::Tensor norm = parameter({kHidden});
  at::Tensor qkv = parameter({3 * kHidden, kHidden});
  at::Tensor out = parameter({kHidden, kHidden});
  at::Tensor up = parameter({4 * kHidden, kHidden});
  at::Tensor down = parameter({kHidden, 4 * kHidden});

  static at::Tensor parameter(at::IntArrayRef sizes) {
    return at::empty(sizes, kBfloat16).requires_grad_();
  }

  std::vector<at::Tensor> parameters() const { return {norm, qkv, out, up, down}; }

  at::Tensor forward(const at::Tensor& input) const {
    const at::Tensor normed = at::rms_norm(input, {kHidden}, norm, 1e-5);
    const auto heads = [](const at::Tensor& tensor) {
      return tensor.view({1, kSequence, kHeads, kHidden / kHeads}).transpose(1, 2);
    };
    const auto parts = at::linear(normed, qkv).chunk(3, -1);
    const at::Tensor attention = at::scaled_dot_product_attention(
        heads(parts[0]), heads(parts[1]), heads(parts[2]), {}, 0.0, true);
    const at::Tensor joined = attention.transpose(1, 2).reshape({kSequence, kHidden});
    const at::Tensor middle = at::add(input, at::linear(joined, out));
    return at::add(middle, at::linear(at::silu(at::linear(middle, up)), down));
  }
};

void step_with_adamw(const Layer& layer) {
  const at::NoGradGuard guard;
  std::vector<at::Tensor> parameters, gradients, averages, square_averages, steps;
  for (const at::Tensor& parameter : layer.parameters()) {
    parameters.push_back(parameter.detach());
    gradients.push_back(parameter.grad());
    averages.push_back(at::zeros_like(parameter));
    square_averages.push_back(at::zeros_like(parameter));
    steps.push_back(at::ones({}, kBfloat16.dtype(at::kFloat)));
  }
  at::_fused_adamw_(parameters,
                    gradients,
                    averages,
                    square_averages,
                    {},
                    steps,
                    1e-3,
                    0.9,
                    0.95,
                    0.1,
                    1e-8,
                    false,
                    false);
}

void train() {
  const Layer layer;
  const at::Tensor input = at::empty({kSequence, kHidden}, kBfloat16);
  torch::autograd::backward({layer.forward(input).sum()}, {});
  for (const at::Tensor& parameter : layer.parameters()) {
    EXPECT_EQ(parameter.grad().sizes(), parameter.sizes());
  }
  step_with_adamw(layer);
}

TEST(TorchTraining, LeavesOnlyTheWorkspacesOfTheForwardAndTheBackwardThread) {
  in_torch_process(h100(), [] {
    train();
    EXPECT_EQ(allocated_bytes(), 2 * 32 * kMiB);
  });
}

TEST(TorchTraining, RunsTheKernelsOfFlashAttentionAndFusedAdamW) {
  in_torch_process(h100(), [] {
    train();
    uint64_t flash = 0;
    uint64_t flash_backward = 0;
    uint64_t adam = 0;
    for (const auto& [name, launches] : launches_by_kernel()) {
      if (name.find("flash_fwd") != std::string::npos) flash += launches;
      if (name.find("flash_bwd_dq_dk_dv") != std::string::npos) flash_backward += launches;
      if (name.find("Adam") != std::string::npos) adam += launches;
    }
    EXPECT_GE(flash, 1u);
    EXPECT_EQ(flash_backward, 1u);
    EXPECT_EQ(adam, 1u);
  });
}

TEST(TorchTraining, RecordsThreeProductsForEachWeight) {
  in_torch_process(h100(), [] {
    train();
    const auto gemms = gemms_by_shape();
    // qkv: output^T = weight (768 x 256) * input^T; the gradients of input and weight.
    EXPECT_EQ(gemms.at({768, 512, 256, 1}), 1u);
    EXPECT_EQ(gemms.at({256, 768, 512, 1}), 1u);
    uint64_t products = 0;
    for (const auto& [shape, count] : gemms) products += count;
    EXPECT_EQ(products, 4u * 3);
  });
}

TEST(TorchTraining, RunsInEveryChildOfAProcessThatHasLoadedTorch) {
  load_torch_cuda();
  for (const VirtualGpuSpec& spec : {h100(), a100()}) {
    in_torch_process(spec, [&] {
      train();
      const int64_t workspace = spec.capability_major == 9 ? 32 * kMiB : 8519680;
      EXPECT_EQ(allocated_bytes(), 2 * workspace);
    });
  }
}

}  // namespace
}  // namespace virtual_gpu
