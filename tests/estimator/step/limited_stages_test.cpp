#include "estimator/step/limited_stages.h"

#include <gtest/gtest.h>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

constexpr double kFlops = 2.0 * 8192 * 8192 * 8192;
constexpr int64_t kProducts = 100;

/// Products back to back, and nothing else.
RankProfile profile_of_products(const Plan& plan) {
  constexpr int64_t kWidth = 8192;
  RankProfile profile = profile_without_work(plan, 0);
  OperatorRecord product = kernels(Direction::kForward, 0);
  product.name = "aten::mm";
  product.dtype = "BFloat16";
  product.shapes = {{kWidth, kWidth}, {kWidth, kWidth}};
  product.flops = kFlops;
  product.bytes = 3.0 * kWidth * kWidth * 2;
  product.count = kProducts;
  profile.operators = {product};
  return profile;
}

LimitedStages products_on(const char* gpu) {
  const Plan plan = small_plan({{"cluster", {{"gpu", gpu}}}});
  const RankProfile profile = profile_of_products(plan);
  const ComputeTarget compute{.gpu = gpu_of(plan.cluster)};
  const ParallelLayout layout(plan.parallelism);
  const Fabric fabric = fabric_of(plan);
  return limited_stages({{.profile = &profile, .stages = {0}}},
                        {.plan = plan, .compute = compute, .layout = layout, .fabric = fabric});
}

// An H200 of 700 W ran such products without waits at 656 TFLOP/s (data/power.json).
TEST(LimitedStages, RunProductsAtWhatThePowerOfTheBoardAllows) {
  const LimitedStages limited = products_on("h100-sxm");
  const BoardUse& board = limited.boards.at(0);
  EXPECT_EQ(board.limit_watts, 700);
  EXPECT_NEAR(board.watts, 700, 5);
  EXPECT_LT(board.speed, 0.92);
  const double flops_per_second = kProducts * kFlops / limited.step.iteration_seconds;
  EXPECT_NEAR(flops_per_second / 656e12, 1, 0.03);
}

TEST(LimitedStages, AreNotSlowedWhereNobodyMeasuredThePower) {
  const BoardUse board = products_on("a100-sxm-80").boards.at(0);
  EXPECT_EQ(board.limit_watts, 0);
  EXPECT_EQ(board.speed, 1);
}

}  // namespace
}  // namespace estimator
