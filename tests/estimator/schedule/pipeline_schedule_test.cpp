#include "estimator/schedule/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "estimator/resolve/resolve_plan.h"
#include "tests/estimator/schedule/schedule_kinds.h"

namespace estimator {
namespace {

/// "F0 F1 B0 B1", with I and W for the parts of a backward; with chunks "F0.1": of chunk 1.
std::string order(const ScheduleShape& shape, int64_t stage) {
  std::string text;
  for (const PipelineStep& step : stage_steps(shape, stage)) {
    if (!text.empty()) text += ' ';
    text += "FBIW"[static_cast<int>(step.kind)] + std::to_string(step.micro_batch);
    if (shape.chunks > 1) text += '.' + std::to_string(step.chunk);
  }
  return text;
}

/// Counted, not computed.
int64_t most_held(const ScheduleShape& shape, int64_t stage) {
  int64_t held = 0, most = 0;
  for (const PipelineStep& step : stage_steps(shape, stage)) {
    if (step.kind == StepKind::kForward) ++held;
    if (step.kind == StepKind::kBackward || step.kind == StepKind::kBackwardInput) --held;
    most = std::max(most, held);
  }
  return most;
}

/// Every mix that is held at some time: how many forwards of each chunk.
std::set<std::vector<int64_t>> held_by_chunk(const ScheduleShape& shape, int64_t stage) {
  std::vector<int64_t> held(static_cast<std::size_t>(shape.chunks));
  std::set<std::vector<int64_t>> seen;
  for (const PipelineStep& step : stage_steps(shape, stage)) {
    held[static_cast<std::size_t>(step.chunk)] += step.kind == StepKind::kForward ? 1 : -1;
    seen.insert(held);
  }
  return seen;
}

const std::vector<ScheduleShape> kShapes = {{kGpipe, 4, 6},
                                            {k1f1b, 1, 3},
                                            {k1f1b, 5, 3},
                                            {k1f1b, 8, 20},
                                            {k1f1b, 4, 8, 2},
                                            {k1f1b, 4, 4, 8},
                                            {k1f1b, 3, 11, 2, 4},
                                            {k1f1b, 4, 16, 3, 8},
                                            {kZbH1, 4, 8},
                                            {kZbH1, 8, 3},
                                            {kZbH1, 4, 8, 2},
                                            {kZbV, 4, 8, 2},
                                            {kZbV, 4, 3, 2},
                                            {kZbV, 1, 5, 2},
                                            {kDualPipeV, 4, 8, 2},
                                            {kDualPipeV, 3, 10, 2},
                                            {kDualPipeV, 1, 2, 2}};

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

// Two stages of two chunks, groups of two: get_schedule_table() for (4, 2, 2) in Megatron-LM's
// tests/unit_tests/pipeline_parallel/test_schedules.py begins 0.0 1.0 0.1 1.1; warm-ups are
// 2 (p - r - 1) + (v - 1) g = 4 and 2.
TEST(PipelineSchedule, InterleavedGroupsGoThroughChunkAfterChunk) {
  const ScheduleShape shape{k1f1b, 2, 4, 2};
  EXPECT_EQ(order(shape, 0),
            "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(order(shape, 1),
            "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
}

// Groups of 3 leave 2 of 5 micro-batches, which are as many as the stages.
// The steps are those of _calculate_single_rank_operations() of torch 2.11.
TEST(PipelineSchedule, OfTorchHasAsManyRoundsAsItsMicroBatchesHaveStages) {
  const Plan plan = resolve_plan(Json::parse(R"({
    "model": {"preset": "llama3-8b", "num_layers": 10},
    "cluster": {"gpu": "h100-sxm", "nodes": 1, "gpus_per_node": 3},
    "parallelism": {"pipeline": 3, "virtual_stages": 2},
    "training": {"framework": "torchtitan", "dtype": "bf16", "micro_batch_size": 1,
                 "global_batch_size": 4}})"),
                                 {});
  const ScheduleShape shape = schedule_shape(plan);
  EXPECT_EQ(order(shape, 1),
            "F0.0 F1.0 F2.0 F3.0 F0.1 F1.1 F2.1 B0.1 F3.1 B1.1 B2.1 B3.1 B0.0 B1.0 B2.0 B3.0");
  EXPECT_EQ(order(shape, 2),
            "F0.0 F1.0 F2.0 F3.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 F3.1 B3.1 B0.0 B1.0 B2.0 B3.0");
}

TEST(PipelineSchedule, TheLastGroupMayBeSmaller) {
  EXPECT_EQ(order({k1f1b, 2, 5, 2, 3}, 1),
            "F0.0 F1.0 F2.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 F3.0 B0.0 F4.0 B1.0 F3.1 B2.0 F4.1 B3.1 "
            "B4.1 B3.0 B4.0");
}

// Qi et al. 2024, figure 3 (top): the last stage puts its weights off by p - 1 micro-batches.
TEST(PipelineSchedule, ZeroBubbleH1PutsWeightsOffByTheStage) {
  EXPECT_EQ(order({kZbH1, 3, 3}, 0), "F0 F1 F2 I0 W0 I1 W1 I2 W2");
  EXPECT_EQ(order({kZbH1, 3, 3}, 2), "F0 I0 F1 I1 F2 I2 W0 W1 W2");
}

TEST(PipelineSchedule, PiecesLieInALoopOrInAV) {
  const ScheduleShape loop{k1f1b, 4, 8, 2}, v{kZbV, 4, 8, 2};
  EXPECT_EQ(virtual_stage(loop, 1, 1), 5);
  EXPECT_EQ(virtual_stage(v, 1, 1), 6);
  for (const ScheduleShape& shape : {loop, v}) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      for (const int64_t chunk : {0, 1}) {
        EXPECT_EQ(stage_of(shape, virtual_stage(shape, stage, chunk)), stage);
      }
    }
  }
}

TEST(PipelineSchedule, EachMicroBatchGoesThroughEachChunkForwardThenBackward) {
  const std::vector<StepKind> whole = {StepKind::kForward, StepKind::kBackward};
  const std::vector<StepKind> split = {
      StepKind::kForward, StepKind::kBackwardInput, StepKind::kBackwardWeight};
  for (const ScheduleShape& shape : kShapes) {
    for (int64_t stage = 0; stage < shape.stages; ++stage) {
      std::map<std::pair<int64_t, int64_t>, std::vector<StepKind>> steps;
      for (const auto& step : stage_steps(shape, stage)) {
        steps[{step.chunk, step.micro_batch}].push_back(step.kind);
      }
      ASSERT_EQ(static_cast<int64_t>(steps.size()), shape.micro_batches * shape.chunks);
      for (const auto& [which, kinds] : steps) EXPECT_TRUE(kinds == whole || kinds == split);
    }
  }
}

TEST(PipelineSchedule, ForwardsInFlightAreThoseThatAreHeld) {
  for (const ScheduleShape& shape : kShapes) {
    for (int64_t stage = 0; stage < shape.stages; ++stage) {
      EXPECT_EQ(forwards_in_flight(shape, stage), most_held(shape, stage)) << order(shape, stage);
    }
  }
}

// Megatron-LM's warm-up, 2 (p - r - 1) + (v - 1) g, and the forward that follows it.
TEST(PipelineSchedule, AnInterleavedStageHoldsItsWarmUpAndOneMore) {
  for (int64_t stage = 0; stage < 8; ++stage) {
    EXPECT_EQ(most_held({k1f1b, 8, 24, 2}, stage), 2 * (7 - stage) + 8 + 1);
    EXPECT_EQ(most_held({k1f1b, 8, 24, 3, 12}, stage), 2 * (7 - stage) + 2 * 12 + 1);
  }
}

// In units of a whole stage: 11.5 to 4.5 of 8 stages and 24 micro-batches in two chunks; ZB-H1 as
// 1F1B until the first part of backward; V 8 each, DualPipeV 8.5.
TEST(PipelineSchedule, HoldsWhatTheOthersHold) {
  EXPECT_EQ(forwards_in_flight({k1f1b, 8, 24, 2}, 0), 23);
  EXPECT_EQ(forwards_in_flight({k1f1b, 8, 24, 2}, 7), 9);
  for (int64_t stage = 0; stage < 8; ++stage) {
    EXPECT_EQ(forwards_in_flight({kZbH1, 8, 24}, stage), 8 - stage);
    EXPECT_EQ(forwards_in_flight({kZbV, 8, 24, 2}, stage), 16);
    EXPECT_EQ(forwards_in_flight({kDualPipeV, 8, 24, 2}, stage), 17);
  }
}

// Narayanan et al. 2021, section 2.2: at most p micro-batches on the first stage, 1 on the last.
TEST(PipelineSchedule, AStageOf1F1BHoldsAsManyMicroBatchesAsStagesFollowIt) {
  const ScheduleShape shape{k1f1b, 8, 24};
  for (int64_t stage = 0; stage < 8; ++stage) {
    EXPECT_EQ(most_held(shape, stage), 8 - stage);
    EXPECT_EQ(forwards_in_flight(shape, stage), 8 - stage);
  }
}

TEST(PipelineSchedule, NoMoreMicroBatchesAreHeldThanThereAre) {
  EXPECT_EQ(most_held({k1f1b, 8, 3}, 0), 3);
  EXPECT_EQ(forwards_in_flight({k1f1b, 8, 3}, 0), 3);
}

TEST(PipelineSchedule, GpipeHoldsAllMicroBatches) {
  for (const int64_t stage : {0, 3}) {
    EXPECT_EQ(most_held({kGpipe, 4, 6}, stage), 6);
    EXPECT_EQ(forwards_in_flight({kGpipe, 4, 6}, stage), 6);
  }
}

TEST(PipelineSchedule, ARankRunsTwoMicroBatchesMoreThanItHolds) {
  EXPECT_EQ(micro_batches_to_execute({k1f1b, 8, 24}, 0), 10);
  EXPECT_EQ(micro_batches_to_execute({k1f1b, 8, 24}, 7), 3);
  EXPECT_EQ(micro_batches_to_execute({k1f1b, 8, 2}, 7), 2);
  EXPECT_EQ(micro_batches_to_execute({kGpipe, 8, 24}, 0), 24);
}

TEST(PipelineSchedule, ALastStageThatDefersWorkRunsAllMicroBatches) {
  const ScheduleShape shape{
      .kind = k1f1b, .stages = 8, .micro_batches = 24, .last_stage_defers = true};
  EXPECT_EQ(micro_batches_to_execute(shape, 7), 24);
  EXPECT_EQ(micro_batches_to_execute(shape, 6), 4);
}

// The rank meets every mix of chunks in flight that the whole plan has.
TEST(PipelineSchedule, AnInterleavedRankRunsUntilTheSameChunksAreInFlightAgain) {
  for (ScheduleShape shape : {ScheduleShape{k1f1b, 4, 64, 2},
                              ScheduleShape{k1f1b, 4, 64, 5},
                              ScheduleShape{k1f1b, 3, 67, 2, 8},
                              ScheduleShape{k1f1b, 4, 4, 8}}) {
    for (int64_t stage = 0; stage < shape.stages; ++stage) {
      ScheduleShape executed = shape;
      executed.micro_batches = micro_batches_to_execute(shape, stage);
      EXPECT_LE(executed.micro_batches, std::min<int64_t>(shape.micro_batches, 32));
      EXPECT_EQ(executed.micro_batches % shape.group(), shape.micro_batches % shape.group());
      EXPECT_EQ(held_by_chunk(executed, stage), held_by_chunk(shape, stage));
    }
  }
}

TEST(PipelineSchedule, RefusesShapesThatItsKindDoesNotHave) {
  EXPECT_THROW(stage_steps({kGpipe, 4, 8, 2}, 0), std::logic_error);
  EXPECT_THROW(stage_steps({kZbV, 4, 8, 1}, 0), std::logic_error);
  EXPECT_THROW(stage_steps({kDualPipeV, 4, 7, 2}, 0), std::logic_error);
  EXPECT_THROW(stage_steps({k1f1b, 4, 8, 2, 3}, 0), std::logic_error);
}

// get_pp_rank_microbatches() in megatron/core/pipeline_parallel/schedules.py: "one extra
// micro-batch forward step before the 1f1b stages".
TEST(PipelineSchedule, HasOneMoreForwardInTheWarmUpWherePairsAreCombined) {
  ScheduleShape shape{.stages = 4, .micro_batches = 8, .chunks = 2};
  EXPECT_EQ(warm_up_forwards(shape, 1), 2 * 2 + 4);
  EXPECT_EQ(forwards_in_flight(shape, 1), 9);
  shape.combines_pairs = true;
  EXPECT_EQ(warm_up_forwards(shape, 1), 2 * 2 + 4 + 1);
  EXPECT_EQ(forwards_in_flight(shape, 1), 10);
}

TEST(PipelineSchedule, CombinesAForwardWithTheBackwardAfterItFromTheEndOfTheWarmUpOn) {
  const ScheduleShape shape{.micro_batches = 2, .combines_pairs = true};
  const auto steps = stage_steps(shape, 0);  // F0, F1 with B0, B1
  EXPECT_FALSE(is_combined(shape, 0, steps, 0));
  EXPECT_TRUE(is_combined(shape, 0, steps, 1));
  EXPECT_EQ(steps[2].micro_batch, 0);
  EXPECT_FALSE(is_combined(shape, 0, steps, 2));
  EXPECT_FALSE(is_combined(shape, 0, steps, 3));
}

}  // namespace
}  // namespace estimator
