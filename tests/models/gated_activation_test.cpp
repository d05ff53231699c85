#include "models/layers/gated_activation.h"

#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace models {
namespace {

using estimator::Activation;

/// Of `expected`, which is given the halves of the input and is multiplied by the weights.
template <class Function>
void expect_weighted(const WeightedActivation& call, const Function& expected_of) {
  const at::Tensor input = at::rand({5, 12}).requires_grad_(true);
  const at::Tensor weights = at::rand({5, 1}).requires_grad_(true);
  const at::Tensor gradient = at::rand({5, 6});

  const auto halves = input.chunk(2, -1);
  const at::Tensor expected = expected_of(halves[0], halves[1]) * weights;
  const at::Tensor fused = fused_weighted_activation(input, weights, call);
  EXPECT_TRUE(fused.allclose(expected));

  const auto of_expected = torch::autograd::grad({expected}, {input, weights}, {gradient});
  const auto of_fused = torch::autograd::grad({fused}, {input, weights}, {gradient});
  EXPECT_TRUE(of_fused[0].allclose(of_expected[0]));
  EXPECT_TRUE(of_fused[1].allclose(of_expected[1]));
}

TEST(WeightedActivation, IsTheActivationTimesTheWeightsForwardAndBackward) {
  expect_weighted({},
                  [](const at::Tensor& gate, const at::Tensor& up) { return at::silu(gate) * up; });
  const WeightedActivation quick{.activation = Activation::kQuickGeglu, .linear_offset = 1};
  expect_weighted(quick, [](const at::Tensor& gate, const at::Tensor& up) {
    return gate * at::sigmoid(1.702 * gate) * (up + 1);
  });
}

/// Of a function of an input [2, 3, width] and a bias [width].
template <class Function>
std::vector<at::Tensor> result_and_gradients(const Function& function, int64_t width) {
  const at::Tensor input = at::linspace(-2, 2, 6 * width).view({2, 3, width}).requires_grad_(true);
  const at::Tensor bias = at::linspace(1, -1, width).requires_grad_(true);
  const at::Tensor output = function(input, bias);
  const at::Tensor gradient = at::linspace(0, 1, output.numel()).view(output.sizes());
  const auto gradients = torch::autograd::grad({output}, {input, bias}, {gradient});
  return {output, gradients[0], gradients[1]};
}

TEST(FusedActivation, AddsTheBiasAndSumsItsGradient) {
  const auto expect_equal = [](Activation activation, int64_t width, const auto& expected) {
    const auto fused = [activation](const at::Tensor& input, const at::Tensor& bias) {
      return fused_activation(input, bias, {.activation = activation});
    };
    const auto ours = result_and_gradients(fused, width);
    const auto theirs = result_and_gradients(expected, width);
    for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(ours[i].allclose(theirs[i]));
  };
  expect_equal(Activation::kGelu, 4, [](const at::Tensor& input, const at::Tensor& bias) {
    return at::gelu(input + bias, "tanh");
  });
  expect_equal(Activation::kSwiglu, 8, [](const at::Tensor& input, const at::Tensor& bias) {
    const auto halves = (input + bias).chunk(2, -1);
    return at::silu(halves[0]) * halves[1];
  });
}

// 1.3 is 1.25 in e4m3, whose numbers between 1 and 2 are eighths: the backward is the one there.
TEST(FusedActivation, MayKeepItsInputInEightBits) {
  const auto of = [](double value, bool keeps_eight_bits) {
    const at::Tensor input = at::full({1, 8}, value).requires_grad_(true);
    const at::Tensor output = fused_activation(
        input, {}, {.activation = Activation::kSwiglu, .keeps_eight_bits = keeps_eight_bits});
    return std::pair(output, torch::autograd::grad({output.sum()}, {input})[0]);
  };
  const auto [output, gradient] = of(1.3, true);
  EXPECT_TRUE(output.equal(of(1.3, false).first));
  EXPECT_TRUE(gradient.allclose(of(1.25, false).second));
  EXPECT_FALSE(gradient.allclose(of(1.3, false).second));
}

}  // namespace
}  // namespace models
