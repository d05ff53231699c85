#include "estimator/compute/gpu_variation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "estimator/communication/fabric.h"
#include "estimator/compute/compute_time.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

// Closed forms of up to three draws; for more, tables of order statistics (Harter 1961).
TEST(ExpectedLargestNormal, IsThatOfOrderStatistics) {
  EXPECT_NEAR(expected_largest_normal(1), 0, 1e-12);
  EXPECT_NEAR(expected_largest_normal(2), 1 / std::sqrt(std::numbers::pi), 1e-6);
  EXPECT_NEAR(expected_largest_normal(3), 1.5 / std::sqrt(std::numbers::pi), 1e-6);
  EXPECT_NEAR(expected_largest_normal(8), 1.42360, 1e-5);
  EXPECT_NEAR(expected_largest_normal(100), 2.50759, 1e-5);
  EXPECT_NEAR(expected_largest_normal(1'000'000), 4.863, 1e-3);
}

TEST(SlowestGpu, IsAUsualOneWhereThereIsOneOrAllAreAlike) {
  EXPECT_DOUBLE_EQ(slowest_gpu_slowdown(1, 0.015), 1);
  EXPECT_DOUBLE_EQ(slowest_gpu_slowdown(16384, 0), 1);
  EXPECT_NEAR(slowest_gpu_slowdown(8, 0.015), 1 + 0.015 * 1.4236, 1e-6);
  EXPECT_GT(slowest_gpu_slowdown(16384, 0.015), slowest_gpu_slowdown(1024, 0.015));
}

TEST(GpuDeviation, IsThePlansElseAssumed) {
  const TaggedNumber assumed =
      gpu_deviation(small_plan({{"cluster", {{"gpu_deviation", nullptr}}}}));
  EXPECT_EQ(assumed.source, Source::kAssumed);
  EXPECT_GT(assumed.value, 0);
  const TaggedNumber given = gpu_deviation(small_plan({{"cluster", {{"gpu_deviation", 0.03}}}}));
  EXPECT_EQ(given.source, Source::kGiven);
  EXPECT_DOUBLE_EQ(given.value, 0.03);
}

TEST(ComputeTarget, IsSlowedByItsDeviationWhereArithmeticBounds) {
  const auto target = [](double deviation) {
    const Plan plan = small_plan({{"cluster", {{"gpu_deviation", deviation}}}});
    return compute_target(plan, gpu_of(plan.cluster), nullptr);
  };
  OperatorRecord product;
  product.name = "aten::mm";
  product.dtype = "BFloat16";
  product.shapes = {{8192, 8192}, {8192, 8192}};
  product.flops = 2.0 * 8192 * 8192 * 8192;
  OperatorRecord stream;
  stream.name = "aten::add";
  stream.dtype = "BFloat16";
  stream.bytes = 1e9;
  const double launch = target(0).rates().launch().kernel_seconds;
  const double alike = operator_seconds(product, target(0)) - launch;
  const double slowest = operator_seconds(product, target(0.02)) - launch;
  EXPECT_NEAR(slowest / alike, slowest_gpu_slowdown(8, 0.02), 1e-9);
  EXPECT_EQ(operator_seconds(stream, target(0)), operator_seconds(stream, target(0.02)));
}

}  // namespace
}  // namespace estimator
