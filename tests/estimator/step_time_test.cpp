#include "estimator/step_time.h"

#include <gtest/gtest.h>

#include "test_plans.h"

namespace estimator {
namespace {

double sum_of_parts(const StepTime& time) {
  return time.compute_seconds + time.bubble_seconds + time.optimizer_seconds +
         sum_of(time.exposed_communication_seconds);
}

StageTime stage(double forward_seconds, double backward_seconds) {
  StageTime time;
  time.forward.compute_seconds = forward_seconds;
  time.backward.compute_seconds = backward_seconds;
  return time;
}

/// Four stages, eight micro-batches, 1F1B.
StepTime step_of(const std::vector<StageTime>& stages) {
  const Plan plan = pipeline_plan();
  const StepTime time = step_time(plan, ParallelLayout(plan), fabric_of(plan), stages);
  EXPECT_NEAR(sum_of_parts(time), time.iteration_seconds, 1e-9);
  EXPECT_GE(time.bubble_seconds, -1e-12);
  return time;
}

TEST(StepTime, OfEqualStagesIsTheScheduleAndItsBubble) {
  const StepTime time = step_of(std::vector<StageTime>(4, stage(1, 2)));
  EXPECT_NEAR(time.iteration_seconds, 33, 1e-9);
  EXPECT_NEAR(time.compute_seconds, 24, 1e-9);
  EXPECT_NEAR(time.bubble_seconds, 9, 1e-9);
}

TEST(StepTime, CountsCommunicationInsideAMicroBatchEachTime) {
  std::vector<StageTime> stages(4, stage(0.75, 1.5));
  for (StageTime& each : stages) {
    each.forward.communication_seconds.tensor = 0.25;
    each.backward.communication_seconds.tensor = 0.5;
  }
  const StepTime time = step_of(stages);
  EXPECT_NEAR(time.iteration_seconds, 33, 1e-9);
  EXPECT_NEAR(time.compute_seconds, 18, 1e-9);
  EXPECT_NEAR(time.exposed_communication_seconds.tensor, 6, 1e-9);
}

TEST(StepTime, TransfersLengthenTheStepByWhatIsWaitedFor) {
  std::vector<StageTime> stages(4, stage(1e-3, 2e-3));
  for (StageTime& each : stages)
    each.send_forward_bytes = each.send_backward_bytes = int64_t{1} << 27;
  const StepTime time = step_of(stages);
  EXPECT_GT(time.exposed_communication_seconds.pipeline, 0);
  EXPECT_NEAR(time.bubble_seconds, 9e-3, 1e-9);
  EXPECT_NEAR(time.iteration_seconds - time.exposed_communication_seconds.pipeline, 33e-3, 1e-9);
}

TEST(StepTime, GradientsHideBehindTheLastBackward) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) {
    each.reduce_gradients = {.sum_seconds = 1, .buckets = 10, .overlappable = true};
  }
  EXPECT_NEAR(step_of(stages).iteration_seconds, 33.1, 1e-9);
  for (StageTime& each : stages) each.reduce_gradients.overlappable = false;
  const StepTime exposed = step_of(stages);
  EXPECT_NEAR(exposed.iteration_seconds, 34, 1e-9);
  EXPECT_NEAR(exposed.exposed_communication_seconds.data, 1, 1e-9);
}

TEST(StepTime, TheStepEndsWithTheSlowestOptimizer) {
  std::vector<StageTime> stages(4, stage(1, 2));
  stages[0].step_end.compute_seconds = 1;
  stages[3].step_end.compute_seconds = 4;
  const StepTime time = step_of(stages);  // stage 0 is ready last
  EXPECT_NEAR(time.iteration_seconds, 37, 1e-9);
  EXPECT_NEAR(time.optimizer_seconds, 1, 1e-9);
  EXPECT_NEAR(time.bubble_seconds, 9 + 3, 1e-9);
}

TEST(StepTime, AStageThatReducesLongestIsReadyLast) {
  std::vector<StageTime> stages(4, stage(1, 2));
  stages[3].reduce_gradients = {.sum_seconds = 100, .buckets = 1, .overlappable = false};
  const StepTime time = step_of(stages);  // stage 3 ends its backwards at 33 - 3 x 2
  EXPECT_NEAR(time.iteration_seconds, 27 + 100, 1e-9);
  EXPECT_NEAR(time.exposed_communication_seconds.data, 100, 1e-9);
  EXPECT_NEAR(time.bubble_seconds, 3, 1e-9);
}

TEST(StepTime, ParametersHideBehindTheNextForward) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) {
    each.gather_parameters = {.sum_seconds = 3, .buckets = 6, .overlappable = true};
  }
  // One of 0.5, and of the other 2.5 what is longer than a forward of 1.
  EXPECT_NEAR(step_of(stages).iteration_seconds, 33 + 0.5 + 1.5, 1e-9);
}

}  // namespace
}  // namespace estimator
