#include "estimator/schedule/schedule_replay.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/estimator/schedule/schedule_kinds.h"

namespace estimator {
namespace {

ScheduleReplay replay_of(const ScheduleShape& shape,
                         const std::vector<ChunkDuration>& durations,
                         const ReplayOptions& options = {}) {
  return replay_schedule(make_schedule(shape), durations, options);
}

/// A stage takes 1 forward and 2 backward, half of it for the weights, in equal chunks.
ScheduleReplay replay_equal_stages(const ScheduleShape& shape) {
  const double part = 1.0 / static_cast<double>(shape.chunks);
  const ChunkDuration duration{
      .forward_seconds = part, .backward_seconds = 2 * part, .backward_weight_seconds = part};
  return replay_of(
      shape,
      std::vector<ChunkDuration>(static_cast<std::size_t>(shape.virtual_stages()), duration));
}

class BothSchedules : public testing::TestWithParam<ScheduleKind> {};
INSTANTIATE_TEST_SUITE_P(ScheduleReplay, BothSchedules, testing::Values(kGpipe, k1f1b));

// (m + p - 1)(F + B): Huang et al. 2019, section 2.3; Narayanan et al. 2021, section 2.2.
TEST_P(BothSchedules, FourStagesOfEightMicroBatchesTake33) {
  EXPECT_DOUBLE_EQ(replay_equal_stages({GetParam(), 4, 8}).end_seconds(), 33);
}

TEST_P(BothSchedules, EightStagesOf24MicroBatchesTake93) {
  EXPECT_DOUBLE_EQ(replay_equal_stages({GetParam(), 8, 24}).end_seconds(), 93);
}

TEST_P(BothSchedules, BubbleOverWorkIsStagesLessOneOverMicroBatches) {
  for (const int64_t stages : {1, 2, 3, 16}) {
    for (const int64_t micro_batches : {1, 5, 64}) {
      const auto m = static_cast<double>(micro_batches);
      const ScheduleReplay replay = replay_equal_stages({GetParam(), stages, micro_batches});
      EXPECT_NEAR(
          replay.stages[0].idle_seconds() / (3 * m), static_cast<double>(stages - 1) / m, 1e-9)
          << stages << " stages, " << micro_batches << " micro-batches";
      EXPECT_NEAR(replay.stages[0].busy_seconds, 3 * m, 1e-9);
    }
  }
}

TEST_P(BothSchedules, ThousandsOfMicroBatchesEndWhenTheFormulaSays) {
  EXPECT_DOUBLE_EQ(replay_equal_stages({GetParam(), 64, 4096}).end_seconds(), 3 * (4096 + 63));
}

TEST_P(BothSchedules, TransfersOnlyDelayWhoWaitsForThem) {
  const ChunkDuration duration{.forward_seconds = 1,
                               .backward_seconds = 2,
                               .send_forward_seconds = 0.5,
                               .send_backward_seconds = 0.25};
  const ScheduleReplay one = replay_of({GetParam(), 2, 1}, {duration, duration});
  // 1 forward, 0.5 over, 1 forward, 2 backward, 0.25 back, 2 backward.
  EXPECT_DOUBLE_EQ(one.stages[0].end_seconds, 6.75);
  EXPECT_DOUBLE_EQ(one.stages[1].end_seconds, 4.5);
  EXPECT_DOUBLE_EQ(one.stages[0].busy_seconds, 3);
}

const std::vector<ChunkDuration> kUnequal = {{.forward_seconds = 1, .backward_seconds = 2},
                                             {.forward_seconds = 2, .backward_seconds = 3}};

// Stage 1: F0 1-3, B0 3-6, F1 6-8, B1 8-11. Stage 0: F0 0-1, F1 1-2, B0 6-8, B1 11-13.
TEST(ScheduleReplay, UnequalStagesFollowTheSlowerOneIn1F1B) {
  const ScheduleReplay replay = replay_of({k1f1b, 2, 2}, kUnequal);
  EXPECT_DOUBLE_EQ(replay.stages[0].end_seconds, 13);
  EXPECT_DOUBLE_EQ(replay.stages[1].end_seconds, 11);
  EXPECT_DOUBLE_EQ(replay.stages[0].busy_seconds, 6);
  EXPECT_DOUBLE_EQ(replay.stages[1].busy_seconds, 10);
}

// The same with 0.5 over and 0.25 back. Stage 1: F0 1.5-3.5, B0 -6.5, F1 -8.5, B1 -11.5. Stage 0:
// B0 6.75-8.75, B1 11.75-13.75.
TEST(ScheduleReplay, UnequalStagesWithTransfers) {
  std::vector<ChunkDuration> durations = kUnequal;
  durations[0].send_forward_seconds = 0.5;
  durations[1].send_backward_seconds = 0.25;
  const ScheduleReplay replay = replay_of({k1f1b, 2, 2}, durations);
  EXPECT_DOUBLE_EQ(replay.stages[0].end_seconds, 13.75);
  EXPECT_DOUBLE_EQ(replay.stages[1].end_seconds, 11.5);
}

// Stage 1: F0 1-3, F1 3-5, B0 5-8, B1 8-11. Stage 0: B0 8-10, B1 11-13.
TEST(ScheduleReplay, UnequalStagesInGpipe) {
  const ScheduleReplay replay = replay_of({kGpipe, 2, 2}, kUnequal);
  EXPECT_DOUBLE_EQ(replay.stages[0].end_seconds, 13);
  EXPECT_DOUBLE_EQ(replay.stages[1].end_seconds, 11);
}

struct Golden {
  const char* name;
  ScheduleShape shape;
  double seconds;
};

class GoldenMakespans : public testing::TestWithParam<Golden> {};

// Every rank joins the step's barrier, so a start skew is left also where nothing else is. Worked
// out for F = I = W = 1 of a whole rank, without communication; DualPipeV's pairs one after the
// other.
INSTANTIATE_TEST_SUITE_P(ScheduleReplay,
                         GoldenMakespans,
                         testing::Values(Golden{"GPipe4", {kGpipe, 4, 8}, 33},
                                         Golden{"OneFOneB4", {k1f1b, 4, 8}, 33},
                                         Golden{"Interleaved4", {k1f1b, 4, 8, 2}, 28.5},
                                         Golden{"ZbH14", {kZbH1, 4, 8}, 27},
                                         Golden{"InterleavedZb4", {kZbH1, 4, 8, 2}, 25.5},
                                         Golden{"ZbV4", {kZbV, 4, 8, 2}, 25.5},
                                         Golden{"DualPipeV4", {kDualPipeV, 4, 8, 2}, 25.5},
                                         Golden{"GPipe8", {kGpipe, 8, 24}, 93},
                                         Golden{"OneFOneB8", {k1f1b, 8, 24}, 93},
                                         Golden{"Interleaved8", {k1f1b, 8, 24, 2}, 82.5},
                                         Golden{"ZbH18", {kZbH1, 8, 24}, 79},
                                         Golden{"InterleavedZb8", {kZbH1, 8, 24, 2}, 75.5},
                                         Golden{"ZbV8", {kZbV, 8, 24, 2}, 75.5},
                                         Golden{"DualPipeV8", {kDualPipeV, 8, 24, 2}, 75.5}),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(GoldenMakespans, AreMet) {
  const ScheduleReplay replay = replay_equal_stages(GetParam().shape);
  EXPECT_NEAR(replay.end_seconds(), GetParam().seconds, 1e-9);
  for (const StageReplay& stage : replay.stages) {
    EXPECT_NEAR(
        stage.busy_seconds, 3.0 * static_cast<double>(GetParam().shape.micro_batches), 1e-9);
  }
}

// Narayanan et al. 2021, section 2.2.
TEST(ScheduleReplay, InterleavingDividesTheBubbleByTheChunks) {
  for (const int64_t stages : {2, 4, 16}) {
    for (const int64_t rounds : {1, 2, 8}) {
      for (const int64_t chunks : {2, 3, 8}) {
        const int64_t m = stages * rounds;
        const ScheduleReplay replay = replay_equal_stages({k1f1b, stages, m, chunks});
        EXPECT_NEAR(replay.stages[0].idle_seconds() / (3.0 * static_cast<double>(m)),
                    static_cast<double>(stages - 1) / static_cast<double>(chunks * m),
                    1e-9)
            << stages << " stages, " << m << " micro-batches, " << chunks << " chunks";
      }
    }
  }
}

// Meta's figure 5 (Llama 3, section 3.3.2): more contiguous micro-batches leave the bubble alone.
TEST(ScheduleReplay, LargerGroupsHaveTheSameBubble) {
  for (const int64_t group : {4, 6, 8, 16}) {
    EXPECT_NEAR(replay_equal_stages({k1f1b, 4, 16, 2, group}).end_seconds(), 48 + 3 * 3 / 2.0, 1e-9)
        << group;
  }
}

// Two stages of two chunks, two micro-batches, F = 1, B = 2, 0.5 over each of the three boundaries.
// Stage 0: F0.0 0-1, F1.0 1-2, then chunk 1 at 2.5 + 0.5: F0.1 3-4, F1.1 4-5. Stage 1:
// F0.0 1.5-2.5, F1.0 2.5-3.5, F0.1 4.5-5.5, B0.1 5.5-7.5, F1.1 7.5-8.5, B1.1 8.5-10.5, B0.0 after
// stage 0's B0.1 8-10 and 0.5: 10.5-12.5, B1.0 after its B1.1 11-13: 13.5-15.5. Stage 0: B0.0
// 13-15, B1.0 16-18.
TEST(ScheduleReplay, ActivationsGoFromTheLastStageToTheFirstBetweenChunks) {
  const ChunkDuration duration{.forward_seconds = 1,
                               .backward_seconds = 2,
                               .send_forward_seconds = 0.5,
                               .send_backward_seconds = 0.5};
  const ScheduleReplay replay =
      replay_of({k1f1b, 2, 2, 2}, std::vector<ChunkDuration>(4, duration));
  EXPECT_DOUBLE_EQ(replay.stages[0].end_seconds, 18);
  EXPECT_DOUBLE_EQ(replay.stages[1].end_seconds, 15.5);
  EXPECT_DOUBLE_EQ(replay.gradients_ready_seconds[1], 13);  // stage 0, chunk 1
  EXPECT_DOUBLE_EQ(replay.gradients_ready_seconds[3], 10.5);
}

// Stage 0: F0 0-1, sends until 1.5, F1 1.5-2.5, sends until 3. Stage 1: F0 1.5-3.5, B0 3.5-6.5,
// sends until 6.75, F1 6.75-8.75, B1 -11.75, sends until 12. Stage 0: B0 6.75-8.75, B1 12-14.
TEST(ScheduleReplay, ASenderThatDoesNotOverlapWaitsForItsTransfer) {
  std::vector<ChunkDuration> durations = kUnequal;
  durations[0].send_forward_seconds = 0.5;
  durations[1].send_backward_seconds = 0.25;
  const ScheduleReplay replay =
      replay_of({k1f1b, 2, 2}, durations, {.overlap_sends = false, .keep_starts = true});
  EXPECT_DOUBLE_EQ(replay.stages[0].end_seconds, 14);
  EXPECT_DOUBLE_EQ(replay.stages[1].end_seconds, 12);
  EXPECT_DOUBLE_EQ(replay.stages[1].busy_seconds, 10);
  EXPECT_EQ(replay.start_seconds, (std::vector<double>{0, 1.5, 6.75, 12, 1.5, 3.5, 6.75, 8.75}));
}

TEST(ScheduleReplay, TheFirstForwardOfAChunkWaitsForItsParameters) {
  std::vector<ChunkDuration> durations = kUnequal;
  durations[0].parameters_ready_seconds = 0.5;
  durations[1].parameters_ready_seconds = 1.25;  // hidden: its input comes at 1.5
  EXPECT_DOUBLE_EQ(replay_of({k1f1b, 2, 2}, durations).end_seconds(), 13.5);
}

TEST(ScheduleReplay, GathersThatBeginWithTheInputAreWaitedForOnEveryStage) {
  std::vector<ChunkDuration> durations = kUnequal;
  const double before = replay_of({k1f1b, 2, 2}, durations).end_seconds();
  durations[0].parameters_wait_seconds = 0.5;
  durations[1].parameters_wait_seconds = 0.25;
  EXPECT_DOUBLE_EQ(replay_of({k1f1b, 2, 2}, durations).end_seconds(), before + 0.75);
}

// The last backwards come one stage after the other.
TEST(ScheduleReplay, WhatTheLastBackwardTakesLongerComesOnceForEachStage) {
  for (const int64_t micro_batches : {4, 8}) {
    const ScheduleShape shape{k1f1b, 4, micro_batches};
    const ChunkDuration usual{.forward_seconds = 1, .backward_seconds = 2};
    ChunkDuration longer = usual;
    longer.last_backward_added_seconds = 0.5;
    const ScheduleReplay before = replay_of(shape, std::vector(4, usual));
    const ScheduleReplay after = replay_of(shape, std::vector(4, longer));
    for (std::size_t s = 0; s < 4; ++s) {
      const double stages_after = 3 - static_cast<double>(s);
      EXPECT_NEAR(after.gradients_ready_seconds[s] - before.gradients_ready_seconds[s],
                  0.5 + 0.5 * stages_after,
                  1e-12);
      EXPECT_NEAR(after.stages[s].busy_seconds - before.stages[s].busy_seconds, 0.5, 1e-12);
    }
  }
}

TEST(ScheduleReplay, TheTurnOfAVIsOnOneStage) {
  const ChunkDuration duration{
      .forward_seconds = 1, .backward_seconds = 2, .backward_weight_seconds = 1};
  const ScheduleReplay replay = replay_of({kZbV, 1, 1, 2}, {duration, duration});
  EXPECT_DOUBLE_EQ(replay.end_seconds(), 6);
}

TEST(ScheduleReplay, OfVariantsIsThatOfEachAlone) {
  for (const ScheduleShape& shape : {ScheduleShape{k1f1b, 2, 5}, ScheduleShape{k1f1b, 1, 4, 2}}) {
    DurationVariants variants = {kUnequal, kUnequal, kUnequal};
    variants[0][0].parameters_ready_seconds = 0.5;
    variants[1][1].send_forward_seconds = 0.25;
    variants[2][0].send_forward_seconds = 0;
    for (const bool overlap_sends : {false, true}) {
      const PipelineSchedule schedule = make_schedule(shape);
      const auto replays = replay_variants(schedule, variants, {.overlap_sends = overlap_sends});
      for (std::size_t i = 0; i < kVariants; ++i) {
        const ScheduleReplay alone = replay_schedule(schedule, variants[i], {overlap_sends});
        EXPECT_EQ(replays[i].gradients_ready_seconds, alone.gradients_ready_seconds);
        for (std::size_t s = 0; s < alone.stages.size(); ++s) {
          EXPECT_EQ(replays[i].stages[s].end_seconds, alone.stages[s].end_seconds);
          EXPECT_EQ(replays[i].stages[s].busy_seconds, alone.stages[s].busy_seconds);
        }
      }
    }
  }
}

TEST(ScheduleReplay, RefusesAsManyDurationsAsThereAreNotStages) {
  EXPECT_THROW(replay_of({k1f1b, 3, 2}, kUnequal), std::logic_error);
}

TEST(ScheduleReplay, RefusesAListThatWaitsForItself) {
  PipelineSchedule schedule = make_schedule({k1f1b, 2, 1});
  std::swap(schedule.steps[0], schedule.steps[1]);  // backward before forward
  EXPECT_THROW(replay_schedule(schedule, kUnequal), std::logic_error);
}

// One stage, four micro-batches: a forward of 1, three pairs of 2, a backward of 2.
TEST(ScheduleReplay, RunsThePairsOfACombinedScheduleAsOneStep) {
  const ScheduleShape shape{.micro_batches = 4, .combines_pairs = true};
  const ScheduleReplay replay = replay_schedule(
      make_schedule(shape), {{.forward_seconds = 1, .backward_seconds = 2, .pair_seconds = {2}}});
  EXPECT_DOUBLE_EQ(replay.end_seconds(), 1 + 3 * 2 + 2);
  EXPECT_DOUBLE_EQ(replay.stages[0].busy_seconds, replay.end_seconds());
}

}  // namespace
}  // namespace estimator
