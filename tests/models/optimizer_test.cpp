#include "models/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/diag.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "models/data_parallel/gradient_buffer.h"
#include "models/optimizer/muon.h"
#include "tests/models/small_shards.h"

namespace models {
namespace {

using estimator::Optimizer;

/// One parameter of `elements` ones with the gradient `gradient`.
struct OneParameter {
  OneParameter(int64_t elements, at::ScalarType dtype, bool sharded, double gradient)
      : parameters(1) {
    parameters[0].value = at::full({elements}, 1.0, dtype).requires_grad_(true);
    buffer = std::make_unique<GradientBuffer>(
        list_of(parameters),
        GradientBufferOptions{.shape = {.sharded = sharded, .data_ranks = 1},
                              .observer = observer});
    parameters[0].main_gradient.fill_(gradient);
  }
  double weight() const { return parameters[0].value.detach()[0].item().toDouble(); }

  SilentObserver observer;
  std::deque<Parameter> parameters;
  std::unique_ptr<GradientBuffer> buffer;
};

TEST(Optimizer, AdamwTakesTheStepOfItsFormula) {
  OneParameter one(4, at::kFloat, false, 0.5);
  OptimizerSettings settings;
  settings.learning_rate = 0.1;
  settings.weight_decay = 0.01;
  DistributedOptimizer optimizer(*one.buffer, settings);
  optimizer.step();
  // First step: bias-corrected moments are g and g^2, so the update is lr * g / (|g| + eps) = lr.
  EXPECT_NEAR(one.weight(), 1.0 * (1 - 0.1 * 0.01) - 0.1, 1e-6);
}

TEST(Optimizer, SgdTakesTheStepOfItsFormula) {
  OneParameter one(4, at::kFloat, false, 0.5);
  OptimizerSettings settings{.kind = Optimizer::kSgd, .learning_rate = 0.1, .weight_decay = 0};
  DistributedOptimizer optimizer(*one.buffer, settings);
  optimizer.step();
  EXPECT_NEAR(one.weight(), 1.0 - 0.1 * 0.5, 1e-6);
  optimizer.step();  // momentum 0.9: velocity 0.95
  EXPECT_NEAR(one.weight(), 0.95 - 0.1 * (0.9 * 0.5 + 0.5), 1e-6);
}

// After five steps all singular values are between 0.7 and 1.2 (Jordan 2024), and the singular
// vectors are those of the matrix: here the axes.
TEST(Muon, MakesAMatrixNearlyOrthogonal) {
  const at::Tensor matrix = at::diag(at::tensor({3.0, 1.0, 0.1}, at::kFloat));
  for (const bool bf16 : {false, true}) {
    const at::Tensor tall = orthogonalised(at::cat({matrix, at::zeros({2, 3})}), {.bf16 = bf16});
    ASSERT_EQ(tall.sizes(), (at::IntArrayRef{5, 3}));
    EXPECT_EQ(tall.scalar_type(), at::kFloat);
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(tall[i][i].item().toDouble(), 0.95, 0.25);
      tall[i][i].zero_();
    }
    EXPECT_EQ(tall.abs().max().item().toDouble(), 0);
  }
}

// One parameter of each kind: a matrix has a momentum, a vector AdamW's two moments, and so has the
// embedding, though it is a matrix.
TEST(Muon, UpdatesMatricesButNotTheVocabulary) {
  SilentObserver observer;
  std::deque<Parameter> parameters(3);
  parameters[0].value = at::full({8, 4}, 1.0).requires_grad_(true);
  parameters[0].of_vocabulary = true;
  parameters[1].value = at::full({4, 6}, 1.0).requires_grad_(true);
  parameters[2].value = at::full({6}, 1.0).requires_grad_(true);
  GradientBuffer buffer(list_of(parameters), {.observer = observer});
  for (Parameter& parameter : parameters) parameter.main_gradient.fill_(0.5);
  DistributedOptimizer optimizer(
      buffer, {.kind = Optimizer::kMuon, .learning_rate = 0.1, .weight_decay = 0});
  optimizer.step();
  EXPECT_EQ(optimizer.state_bytes(), 4 * (2 * 8 * 4 + 4 * 6 + 2 * 6));
  // AdamW's first step is the learning rate, whatever the gradient is.
  EXPECT_NEAR(parameters[0].value[0][0].item().toDouble(), 0.9, 1e-5);
  EXPECT_NEAR(parameters[2].value[0].item().toDouble(), 0.9, 1e-5);
  // A matrix of equal elements is u v^T; its only singular value becomes about 1, so each element
  // is about 1 / sqrt(24), times sqrt(6) of the larger side.
  EXPECT_NEAR(parameters[1].value[0][0].item().toDouble(), 1 - 0.1 * 0.5, 0.015);
}

TEST(Optimizer, KeepsFp32WeightsBesideABf16Model) {
  OneParameter one(1000, at::kBFloat16, false, 0.5);
  DistributedOptimizer optimizer(*one.buffer, {.learning_rate = 0.1});
  EXPECT_EQ(optimizer.master_weight_bytes(), 4000);
  EXPECT_EQ(optimizer.state_bytes(), 0);  // made at the first step
  optimizer.step();
  EXPECT_EQ(optimizer.state_bytes(), 8000);
  EXPECT_EQ(optimizer.step_scalar_bytes(), 4);
  EXPECT_LT(one.weight(), 1.0);
}

// Two bytes for each moment, and a scale of four for each of them; steps are computed in fp32.
TEST(Optimizer, MayKeepItsMomentsInBf16) {
  OneParameter wide(1000, at::kBFloat16, false, 0.3), narrow(1000, at::kBFloat16, false, 0.3);
  OptimizerSettings settings{.learning_rate = 0.1};
  DistributedOptimizer usual(*wide.buffer, settings);
  settings.narrow_moments = true;
  DistributedOptimizer optimizer(*narrow.buffer, settings);
  for (int step = 0; step < 3; ++step) {
    usual.step();
    optimizer.step();
  }
  EXPECT_EQ(optimizer.master_weight_bytes(), 4000);
  EXPECT_EQ(optimizer.state_bytes(), 4000);
  EXPECT_EQ(optimizer.step_scalar_bytes(), 4 + 2 * 4);
  EXPECT_NEAR(narrow.weight(), wide.weight(), 0.01);
  EXPECT_LT(narrow.weight(), 0.75);
}

// In two calls, one after the other, as in one.
TEST(Optimizer, UpdatesTheFirstChunkBeforeTheOthers) {
  const auto weights_after_steps = [](UpdateCalls calls) {
    SilentObserver observer;
    std::deque<Parameter> parameters(2);
    for (std::size_t i = 0; i < 2; ++i) {
      parameters[i].value = at::full({64}, 1.0).requires_grad_(true);
      parameters[i].chunk = static_cast<int64_t>(i);
    }
    GradientBuffer buffer(list_of(parameters), {.observer = observer});
    for (Parameter& parameter : parameters) parameter.main_gradient.fill_(0.5);
    DistributedOptimizer optimizer(buffer,
                                   {.learning_rate = 0.1, .calls = calls, .shared_step = true});
    optimizer.step();
    optimizer.step();
    return at::cat({parameters[0].value.detach(), parameters[1].value.detach()});
  };
  const at::Tensor in_turn = weights_after_steps(UpdateCalls::kFirstChunk);
  EXPECT_TRUE(in_turn.equal(weights_after_steps(UpdateCalls::kOne)));
  EXPECT_LT(in_turn.max().item().toDouble(), 0.9);
}

TEST(Optimizer, AnFp32ModelIsItsOwnMasterWeight) {
  OneParameter one(1000, at::kFloat, true, 0.5);
  DistributedOptimizer optimizer(*one.buffer, {.kind = Optimizer::kSgd});
  optimizer.step();
  EXPECT_EQ(optimizer.master_weight_bytes(), 0);
  EXPECT_EQ(optimizer.state_bytes(), 4000);
  EXPECT_LT(one.weight(), 1.0);
}

TEST(Optimizer, SmallStepsAreNotLostInBf16) {
  // 1e-4 of 1.0 is far below half a bf16 step (2^-9): only the fp32 weights can add such steps up.
  OneParameter one(8, at::kBFloat16, false, 1.0);
  DistributedOptimizer optimizer(
      *one.buffer, {.kind = Optimizer::kSgd, .learning_rate = 1e-4, .weight_decay = 0});
  optimizer.step();
  EXPECT_EQ(one.weight(), 1.0);
  for (int i = 1; i < 100; ++i) optimizer.step();
  // Velocity (1 - 0.9^t) / 0.1 summed over 100 steps is 10 * (100 - 9) = 910.
  EXPECT_NEAR(one.weight(), 1.0 - 910e-4, 4e-3);
}

}  // namespace
}  // namespace models
