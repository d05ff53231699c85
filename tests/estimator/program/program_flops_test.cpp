#include "estimator/program/program_flops.h"

#include <gtest/gtest.h>

#include "tests/estimator/replay/traced_rank.h"

namespace estimator {
namespace {

class ProgramFlopsTest : public testing::Test {
 protected:
  void product(Direction direction, double flops) {
    add({.kind = WorkKind::kProduct, .name = "cublas", .flops = flops}, direction);
  }
  void attention(Direction direction, const char* name, double flops) {
    add({.name = "flash", .operator_name = name, .flops = flops}, direction);
  }
  void kernel(const char* name) {
    add({.name = name, .bytes_source = BytesSource::kParameters}, Direction::kForward);
  }
  void compiled_kernel() { kernel("triton_poi_fused_add_0"); }
  /// Of what was added last.
  void evaluate() {
    const auto end = static_cast<int64_t>(rank_.profile.trace->events.kind.size());
    rank_.profile.trace->evaluations.push_back({.begin = end - 1, .end = end});
  }
  void differentiate_backward() { rank_.profile.trace->differentiates_backward = true; }
  ProgramFlops flops() const { return program_flops(rank_.profile); }

 private:
  void add(const TraceWork& work, Direction direction) {
    rank_.compute(0, 1);
    rank_.profile.trace->works.back() = work;
    rank_.profile.trace->events.direction.back() = static_cast<int64_t>(direction);
  }
  TracedRank rank_{0, 1};
};

TEST_F(ProgramFlopsTest, OfTheModelLeaveOutWhatModulesRunAgain) {
  product(Direction::kForward, 100);
  product(Direction::kRecompute, 100);
  product(Direction::kBackward, 200);
  product(Direction::kOptimizerStep, 50);
  EXPECT_EQ(flops().executed, 450);
  EXPECT_EQ(flops().model, 300);
  EXPECT_TRUE(flops().is_model_known);
}

TEST_F(ProgramFlopsTest, OfTheModelAreAtMostTwoProductsInBackwardForEachInForward) {
  product(Direction::kForward, 100);
  product(Direction::kBackward, 300);
  compiled_kernel();
  EXPECT_EQ(flops().model, 300);
  EXPECT_TRUE(flops().is_model_known);
}

TEST_F(ProgramFlopsTest, OfTheModelLeaveOutEvaluations) {
  product(Direction::kForward, 100);
  evaluate();
  product(Direction::kForward, 100);
  product(Direction::kBackward, 200);
  product(Direction::kForward, 100);
  evaluate();
  EXPECT_EQ(flops().executed, 500);
  EXPECT_EQ(flops().model, 300);
}

// FlashAttention-2's backward: five products, of which query x key was computed before.
TEST_F(ProgramFlopsTest, OfFusedAttentionLeaveOutTheProductThatItsBackwardRunsAgain) {
  attention(Direction::kForward, "aten::_flash_attention_forward", 100);
  attention(Direction::kBackward, "aten::_flash_attention_backward", 250);
  EXPECT_EQ(flops().executed, 350);
  EXPECT_EQ(flops().model, 300);
}

TEST_F(ProgramFlopsTest, OfCompiledCodeWithFrozenWeightsAreNotKnown) {
  product(Direction::kForward, 50);
  product(Direction::kForward, 50);
  product(Direction::kBackward, 120);
  EXPECT_TRUE(flops().is_model_known);
  kernel("transformer_engine::normalization::rmsnorm_fwd_tuned_kernel");
  EXPECT_TRUE(flops().is_model_known);
  compiled_kernel();
  EXPECT_FALSE(flops().is_model_known);
}

// Gradients of gradients are no recompute.
TEST_F(ProgramFlopsTest, OfABackwardThatIsDifferentiatedAreTheModels) {
  product(Direction::kForward, 100);
  product(Direction::kBackward, 500);
  differentiate_backward();
  EXPECT_EQ(flops().model, 600);
}

// Eight layers have 8 products in forward, and in backward 2 each but for the first one.
TEST_F(ProgramFlopsTest, OfCompiledCodeAreKnownIfTheInputAloneHasNoGradient) {
  for (int i = 0; i < 8; ++i) product(Direction::kForward, 100);
  for (int i = 0; i < 15; ++i) product(Direction::kBackward, 100);
  compiled_kernel();
  EXPECT_TRUE(flops().is_model_known);
  EXPECT_EQ(flops().model, 2300);
}

}  // namespace
}  // namespace estimator
