#include "estimator/cluster/goodput.h"

#include <gtest/gtest.h>

#include <cmath>

namespace estimator {
namespace {

// 16,384 GPUs at Llama 3's rate: a failure every 3.09 h; one minute to save, ten to restart.
constexpr FailureModel kLlama{
    .mean_seconds_between_failures = 11124, .checkpoint_seconds = 60, .restart_seconds = 600};

// Young: sqrt(2 x 60 x 11124) = 1155.4; x (1 + 0.05193 / 3 + 0.0027 / 9) - 60.
TEST(BestInterval, IsDalys) { EXPECT_NEAR(best_interval_seconds(kLlama), 1115.7, 0.2); }

TEST(BestInterval, IsTheTimeBetweenFailuresWhereSavingTakesTwiceAsLong) {
  EXPECT_DOUBLE_EQ(
      best_interval_seconds({.mean_seconds_between_failures = 100, .checkpoint_seconds = 200}),
      100);
}

TEST(BestInterval, WastesLeast) {
  const double best = best_interval_seconds(kLlama);
  const double wasted = expected_time(1e7, best, kLlama).total_seconds();
  EXPECT_LT(wasted, expected_time(1e7, best * 0.8, kLlama).total_seconds());
  EXPECT_LT(wasted, expected_time(1e7, best * 1.25, kLlama).total_seconds());
}

// Of 1115.7 s: 11124 x e^(600/11124) x (e^(1175.7/11124) - 1) = 1308.8 s.
TEST(ExpectedTime, IsDalysAndItsPartsAddUp) {
  const ExpectedTime time = expected_time(1115.7 * 100, 1115.7, kLlama);
  EXPECT_NEAR(time.total_seconds(), 130880, 30);
  EXPECT_NEAR(time.checkpoint_seconds, 6000, 1e-6);
  EXPECT_NEAR(time.failures, 130880.0 / 11124, 0.01);
  // 11.765 failures, of which e^(-600/11124) = 0.9475 do not interrupt a restart.
  EXPECT_NEAR(time.restart_seconds, 6688, 3);
  EXPECT_NEAR(time.repeated_seconds, 130880 - 111570 - 6000 - 6688, 30);
}

// A failure every 360 s, ten minutes to restart, 169.8 s of work and one minute to save. A restart
// is completed with the probability e^(-600/360) = 0.189: of each interval 360 e^(600/360)
// (e^(229.8/360) - 1) = 1,702 s, (e^(229.8/360) - 1) 600 = 536 s. 33 % by a simulation of failures.
TEST(ExpectedTime, CountsRestartsThatFailAsRepeated) {
  const FailureModel model{
      .mean_seconds_between_failures = 360, .checkpoint_seconds = 60, .restart_seconds = 600};
  const ExpectedTime time = expected_time(169.8 * 1000, 169.8, model);
  EXPECT_NEAR(time.total_seconds() / 1.702e6, 1, 1e-3);
  EXPECT_NEAR(time.restart_seconds / 0.536e6, 1, 1e-3);
  EXPECT_NEAR(time.restart_seconds / time.total_seconds(), 0.33, 0.02);
}

TEST(ExpectedTime, WithoutFailuresIsWorkAndCheckpoints) {
  const FailureModel reliable{.mean_seconds_between_failures = 1e15, .checkpoint_seconds = 60};
  EXPECT_NEAR(expected_time(1e5, 1000, reliable).total_seconds(), 1e5 + 100 * 60, 1e-2);
}

TEST(ExpectedTime, OfLittleWorkSavesOnce) {
  EXPECT_DOUBLE_EQ(expected_time(10, 1000, kLlama).checkpoint_seconds, 60);
  EXPECT_DOUBLE_EQ(expected_time(0, 1000, kLlama).total_seconds(), 0);
}

TEST(ExpectedTime, IsInfiniteWhereFailuresLeaveNoProgress) {
  const FailureModel hopeless{
      .mean_seconds_between_failures = 1, .checkpoint_seconds = 60, .restart_seconds = 6000};
  EXPECT_TRUE(std::isinf(expected_time(1e5, 1000, hopeless).total_seconds()));
  EXPECT_TRUE(
      std::isinf(expected_time(1e5, 1000, {.mean_seconds_between_failures = 1}).total_seconds()));
}

}  // namespace
}  // namespace estimator
