#include "estimator/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace estimator {
namespace {

constexpr ScheduleKind kGpipe = ScheduleKind::kGpipe;
constexpr ScheduleKind k1f1b = ScheduleKind::kOneForwardOneBackward;

/// "F0 F1 B0 B1"
std::string order(const ScheduleShape& shape, int64_t stage) {
  std::string text;
  for (const PipelineStep& step : stage_steps(shape, stage)) {
    if (!text.empty()) text += ' ';
    text += (step.kind == StepKind::kForward ? 'F' : 'B') + std::to_string(step.micro_batch);
  }
  return text;
}

/// Counted, not computed.
int64_t most_held(const ScheduleShape& shape, int64_t stage) {
  int64_t held = 0, most = 0;
  for (const PipelineStep& step : stage_steps(shape, stage)) {
    held += step.kind == StepKind::kForward ? 1 : -1;
    most = std::max(most, held);
  }
  return most;
}

TEST(PipelineSchedule, OneForwardOneBackwardOfThreeStages) {
  const ScheduleShape shape{k1f1b, 3, 4};
  EXPECT_EQ(order(shape, 0), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(order(shape, 1), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(order(shape, 2), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(PipelineSchedule, GpipeDoesAllForwardsFirst) {
  EXPECT_EQ(order({kGpipe, 3, 3}, 1), "F0 F1 F2 B0 B1 B2");
}

TEST(PipelineSchedule, AFewMicroBatchesFillOnlyTheWarmUp) {
  EXPECT_EQ(order({k1f1b, 8, 2}, 0), "F0 F1 B0 B1");
}

TEST(PipelineSchedule, EachMicroBatchGoesForwardOnceThenBackwardOnce) {
  for (const ScheduleKind kind : {kGpipe, k1f1b}) {
    for (const int64_t stages : {1, 2, 5, 8}) {
      for (const int64_t micro_batches : {1, 3, 8, 20}) {
        for (int64_t stage = 0; stage < stages; ++stage) {
          std::map<int64_t, std::vector<StepKind>> steps;
          for (const auto& step : stage_steps({kind, stages, micro_batches}, stage)) {
            steps[step.micro_batch].push_back(step.kind);
          }
          ASSERT_EQ(static_cast<int64_t>(steps.size()), micro_batches);
          for (const auto& [micro_batch, kinds] : steps) {
            EXPECT_EQ(kinds, (std::vector{StepKind::kForward, StepKind::kBackward}));
          }
        }
      }
    }
  }
}

// Narayanan et al. 2021, section 2.2: at most p micro-batches on the first stage, 1 on the last.
TEST(PipelineSchedule, AStageOf1F1BHoldsAsManyMicroBatchesAsStagesFollowIt) {
  const ScheduleShape shape{k1f1b, 8, 24};
  for (int64_t stage = 0; stage < 8; ++stage) {
    EXPECT_EQ(most_held(shape, stage), 8 - stage);
    EXPECT_EQ(micro_batches_in_flight(shape, stage), 8 - stage);
  }
}

TEST(PipelineSchedule, NoMoreMicroBatchesAreHeldThanThereAre) {
  EXPECT_EQ(most_held({k1f1b, 8, 3}, 0), 3);
  EXPECT_EQ(micro_batches_in_flight({k1f1b, 8, 3}, 0), 3);
}

TEST(PipelineSchedule, GpipeHoldsAllMicroBatches) {
  for (const int64_t stage : {0, 3}) {
    EXPECT_EQ(most_held({kGpipe, 4, 6}, stage), 6);
    EXPECT_EQ(micro_batches_in_flight({kGpipe, 4, 6}, stage), 6);
  }
}

TEST(PipelineSchedule, ARankRunsTwoMicroBatchesMoreThanItHolds) {
  EXPECT_EQ(micro_batches_to_execute({k1f1b, 8, 24}, 0), 10);
  EXPECT_EQ(micro_batches_to_execute({k1f1b, 8, 24}, 7), 3);
  EXPECT_EQ(micro_batches_to_execute({k1f1b, 8, 2}, 7), 2);
  EXPECT_EQ(micro_batches_to_execute({kGpipe, 8, 24}, 0), 24);
}

}  // namespace
}  // namespace estimator
