#include "models/gated_activation.h"

#include <ATen/ops/rand.h>
#include <ATen/ops/silu.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace models {
namespace {

TEST(WeightedSwiglu, IsSwigluTimesTheWeightsForwardAndBackward) {
  const at::Tensor input = at::rand({5, 12}).requires_grad_(true);
  const at::Tensor weights = at::rand({5, 1}).requires_grad_(true);
  const at::Tensor gradient = at::rand({5, 6});

  const auto halves = input.chunk(2, -1);
  const at::Tensor expected = at::silu(halves[0]) * halves[1] * weights;
  const at::Tensor fused = fused_weighted_swiglu(input, weights);
  EXPECT_TRUE(fused.allclose(expected));

  const auto of_expected = torch::autograd::grad({expected}, {input, weights}, {gradient});
  const auto of_fused = torch::autograd::grad({fused}, {input, weights}, {gradient});
  EXPECT_TRUE(of_fused[0].allclose(of_expected[0]));
  EXPECT_TRUE(of_fused[1].allclose(of_expected[1]));
}

}  // namespace
}  // namespace models
