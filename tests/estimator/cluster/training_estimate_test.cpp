#include "estimator/cluster/training_estimate.h"

#include <gtest/gtest.h>

#include "estimator/communication/fabric.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

TrainingEstimate estimate_of(const Json& changes, double iteration_seconds = 10) {
  Json with_steps = {{"training", {{"steps", 100000}}}};
  with_steps.merge_patch(changes);
  const Plan plan = small_plan(with_steps);
  return training_estimate(training_run(plan), gpu_of(plan.cluster), iteration_seconds).value();
}

// 50,677 GPU hours: 16,384 GPUs x 54 days x 24 / 419 interruptions (arXiv 2407.21783). 8 GPUs.
TEST(TrainingEstimate, TakesFailuresFromPublishedRunsInProportionToGpus) {
  const TrainingEstimate training = estimate_of(Json::object());
  EXPECT_NEAR(training.gpu_hours_between_failures.value, 16384.0 * 54 * 24 / 419, 1);
  EXPECT_EQ(training.gpu_hours_between_failures.source, Source::kPublished);
  EXPECT_NEAR(training.seconds_between_failures, 50677.0 * 3600 / 8, 1);
  EXPECT_EQ(training.restart_seconds.source, Source::kAssumed);
}

TEST(TrainingEstimate, TakesThePlansWordFirst) {
  const TrainingEstimate training = estimate_of({{"reliability",
                                                  {{"gpu_hours_between_failures", 8000},
                                                   {"restart_seconds", 60},
                                                   {"checkpoint_seconds", 5},
                                                   {"save_interval", 50}}}});
  EXPECT_EQ(training.gpu_hours_between_failures.source, Source::kGiven);
  EXPECT_DOUBLE_EQ(training.seconds_between_failures, 3.6e6);
  EXPECT_EQ(training.save_interval, 50);
  EXPECT_EQ(training.save_interval_source, Source::kGiven);
  EXPECT_NEAR(training.lost_seconds.checkpoints, 100000 / 50 * 5, 1e-6);
}

// Daly: sqrt(2 x 60 x 22.8e6) - 60 and a little is 52,255 s: 5,226 steps of 10 s.
TEST(TrainingEstimate, SavesAtDalysIntervalInWholeSteps) {
  const TrainingEstimate training = estimate_of(Json::object());
  EXPECT_NEAR(static_cast<double>(training.save_interval), 5226, 5);
  EXPECT_EQ(training.save_interval_source, Source::kComputed);
}

TEST(TrainingEstimate, GoodputIsTheShareThatTrainsAndPartsAddUp) {
  const TrainingEstimate training = estimate_of(Json::object());
  EXPECT_DOUBLE_EQ(training.seconds_without_failures, 1e6);
  EXPECT_DOUBLE_EQ(training.goodput, 1e6 / training.seconds);
  const LostSeconds& lost = training.lost_seconds;
  EXPECT_NEAR(training.seconds, 1e6 + lost.checkpoints + lost.restarts + lost.repeated_work, 1e-3);
}

TEST(TrainingEstimate, PricesGivenByThePlanStandAlone) {
  const TrainingEstimate training = estimate_of({{"cluster", {{"usd_per_gpu_hour", 2.0}}}});
  ASSERT_EQ(training.costs.size(), 1U);
  EXPECT_EQ(training.costs[0].source, Source::kGiven);
  EXPECT_DOUBLE_EQ(training.cost_usd.value(), 2 * training.gpu_hours);
}

TEST(TrainingEstimate, PublishedPricesCarryDateAndProvider) {
  const TrainingEstimate training = estimate_of(Json::object());
  EXPECT_FALSE(training.cost_usd.has_value());
  ASSERT_GT(training.costs.size(), 1U);
  EXPECT_LE(training.costs.front().cost_usd, training.costs.back().cost_usd);
  EXPECT_EQ(training.costs.front().source, Source::kPublished);
  for (const TrainingCost& cost : training.costs) {
    EXPECT_FALSE(cost.provider.empty());
    EXPECT_FALSE(cost.date.empty());
    EXPECT_FALSE(cost.origin.empty());
  }
}

TEST(TrainingEstimate, RefusesFailuresThatLeaveNoProgress) {
  const std::string complaint = complaint_of([] {
    estimate_of({{"reliability", {{"gpu_hours_between_failures", 1e-3}, {"save_interval", 1000}}}});
  });
  EXPECT_NE(complaint.find("too fast for any progress"), std::string::npos) << complaint;
}

}  // namespace
}  // namespace estimator
