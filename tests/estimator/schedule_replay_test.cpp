#include "estimator/schedule_replay.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace estimator {
namespace {

constexpr ScheduleKind kGpipe = ScheduleKind::kGpipe;
constexpr ScheduleKind k1f1b = ScheduleKind::kOneForwardOneBackward;

ScheduleReplay replay_equal_stages(ScheduleKind kind, int64_t stages, int64_t micro_batches) {
  const StageDuration duration{.forward_seconds = 1, .backward_seconds = 2};
  return replay_schedule({kind, stages, micro_batches},
                         std::vector<StageDuration>(static_cast<std::size_t>(stages), duration));
}

class BothSchedules : public testing::TestWithParam<ScheduleKind> {};
INSTANTIATE_TEST_SUITE_P(ScheduleReplay, BothSchedules, testing::Values(kGpipe, k1f1b));

// (m + p - 1)(F + B): Huang et al. 2019, section 2.3; Narayanan et al. 2021, section 2.2.
TEST_P(BothSchedules, FourStagesOfEightMicroBatchesTake33) {
  EXPECT_DOUBLE_EQ(replay_equal_stages(GetParam(), 4, 8).end_seconds(), 33);
}

TEST_P(BothSchedules, EightStagesOf24MicroBatchesTake93) {
  EXPECT_DOUBLE_EQ(replay_equal_stages(GetParam(), 8, 24).end_seconds(), 93);
}

TEST_P(BothSchedules, BubbleOverWorkIsStagesLessOneOverMicroBatches) {
  for (const int64_t stages : {1, 2, 3, 16}) {
    for (const int64_t micro_batches : {1, 5, 64}) {
      const auto m = static_cast<double>(micro_batches);
      const ScheduleReplay replay = replay_equal_stages(GetParam(), stages, micro_batches);
      EXPECT_NEAR(
          replay.stages[0].idle_seconds() / (3 * m), static_cast<double>(stages - 1) / m, 1e-9)
          << stages << " stages, " << micro_batches << " micro-batches";
      EXPECT_NEAR(replay.stages[0].busy_seconds, 3 * m, 1e-9);
    }
  }
}

TEST_P(BothSchedules, ThousandsOfMicroBatchesEndWhenTheFormulaSays) {
  EXPECT_DOUBLE_EQ(replay_equal_stages(GetParam(), 64, 4096).end_seconds(), 3 * (4096 + 63));
}

TEST_P(BothSchedules, TransfersOnlyDelayWhoWaitsForThem) {
  const StageDuration duration{.forward_seconds = 1,
                               .backward_seconds = 2,
                               .send_forward_seconds = 0.5,
                               .send_backward_seconds = 0.25};
  const ScheduleReplay one = replay_schedule({GetParam(), 2, 1}, {duration, duration});
  // 1 forward, 0.5 over, 1 forward, 2 backward, 0.25 back, 2 backward.
  EXPECT_DOUBLE_EQ(one.stages[0].end_seconds, 6.75);
  EXPECT_DOUBLE_EQ(one.stages[1].end_seconds, 4.5);
  EXPECT_DOUBLE_EQ(one.stages[0].busy_seconds, 3);
}

const std::vector<StageDuration> kUnequal = {{.forward_seconds = 1, .backward_seconds = 2},
                                             {.forward_seconds = 2, .backward_seconds = 3}};

// Stage 1: F0 1-3, B0 3-6, F1 6-8, B1 8-11. Stage 0: F0 0-1, F1 1-2, B0 6-8, B1 11-13.
TEST(ScheduleReplay, UnequalStagesFollowTheSlowerOneIn1F1B) {
  const ScheduleReplay replay = replay_schedule({k1f1b, 2, 2}, kUnequal);
  EXPECT_DOUBLE_EQ(replay.stages[0].end_seconds, 13);
  EXPECT_DOUBLE_EQ(replay.stages[1].end_seconds, 11);
  EXPECT_DOUBLE_EQ(replay.stages[0].busy_seconds, 6);
  EXPECT_DOUBLE_EQ(replay.stages[1].busy_seconds, 10);
}

// The same with 0.5 over and 0.25 back. Stage 1: F0 1.5-3.5, B0 -6.5, F1 -8.5, B1 -11.5. Stage 0:
// B0 6.75-8.75, B1 11.75-13.75.
TEST(ScheduleReplay, UnequalStagesWithTransfers) {
  std::vector<StageDuration> durations = kUnequal;
  durations[0].send_forward_seconds = 0.5;
  durations[1].send_backward_seconds = 0.25;
  const ScheduleReplay replay = replay_schedule({k1f1b, 2, 2}, durations);
  EXPECT_DOUBLE_EQ(replay.stages[0].end_seconds, 13.75);
  EXPECT_DOUBLE_EQ(replay.stages[1].end_seconds, 11.5);
}

// Stage 1: F0 1-3, F1 3-5, B0 5-8, B1 8-11. Stage 0: B0 8-10, B1 11-13.
TEST(ScheduleReplay, UnequalStagesInGpipe) {
  const ScheduleReplay replay = replay_schedule({kGpipe, 2, 2}, kUnequal);
  EXPECT_DOUBLE_EQ(replay.stages[0].end_seconds, 13);
  EXPECT_DOUBLE_EQ(replay.stages[1].end_seconds, 11);
}

TEST(ScheduleReplay, RefusesAsManyDurationsAsThereAreNotStages) {
  EXPECT_THROW(replay_schedule({k1f1b, 3, 2}, kUnequal), std::logic_error);
}

}  // namespace
}  // namespace estimator
