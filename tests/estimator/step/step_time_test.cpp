#include "estimator/step/step_time.h"

#include <gtest/gtest.h>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

double sum_of_parts(const StepTime& time) {
  return time.compute_seconds + time.bubble_seconds + time.optimizer_seconds +
         time.data_loading_seconds + sum_of(time.exposed_communication_seconds);
}

StageTime stage(double forward_seconds, double backward_seconds) {
  ChunkTime chunk;
  chunk.forward.compute_seconds = forward_seconds;
  chunk.backward.compute_seconds = backward_seconds;
  return {.chunks = {chunk}};
}

StageTime two_chunks() {
  StageTime time = stage(0.5, 1);
  time.chunks.push_back(time.chunks[0]);
  return time;
}

/// Four stages, eight micro-batches, 1F1B.
StepTime step_of(const std::vector<StageTime>& stages, const Json& changes = Json::object()) {
  const Plan plan = pipeline_plan(changes);
  const StepTime time = step_time(plan, ParallelLayout(plan.parallelism), fabric_of(plan), stages);
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

// The second stage works 8 x 4 s, and waits 1 s before its first micro-batch, and so on: the first
// one, which ends last, would have a bubble of 15 s.
TEST(StepTime, TellsThePartsOfTheStageThatIsBusyLongest) {
  std::vector<StageTime> stages(4, stage(1, 2));
  EXPECT_EQ(step_of(stages).stage, 0);
  stages[1] = stage(1.5, 2.5);
  const StepTime time = step_of(stages);
  EXPECT_EQ(time.stage, 1);
  EXPECT_NEAR(time.iteration_seconds, 39, 1e-9);
  EXPECT_NEAR(time.compute_seconds, 32, 1e-9);
  EXPECT_NEAR(time.bubble_seconds, 7, 1e-9);
}

// Forwards of 1 s and backwards of 2: the last stage waits 3 s for its first forward, and at the
// end 6 s for the backwards of the others; the first one three times for 3 s at the end, and before
// its first backward for what the three behind it do.
TEST(StepTime, TellsTheLongWaitsOfEachStage) {
  const Plan plan = pipeline_plan();
  const std::vector<StageTime> stages(4, stage(1, 2));
  const auto waits = [&](double at_least) {
    return play_step(plan, ParallelLayout(plan.parallelism), fabric_of(plan), stages, at_least)
        .long_wait_seconds;
  };
  for (const double seconds : waits(0)) EXPECT_NEAR(seconds, 9, 1e-9);
  for (const double seconds : waits(100)) EXPECT_EQ(seconds, 0);
  EXPECT_NEAR(waits(3)[3], 9, 1e-9);
  EXPECT_NEAR(waits(5)[3], 6, 1e-9);
}

// All stages wait for the first one.
TEST(StepTime, TheFirstMicroBatchTakesLongerOnce) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) each.first_added.compute_seconds = 0.5;
  const StepTime time = step_of(stages);
  EXPECT_NEAR(time.iteration_seconds, 33.5, 1e-9);
  EXPECT_NEAR(time.compute_seconds, 24.5, 1e-9);
  EXPECT_NEAR(time.bubble_seconds, 9, 1e-9);
}

// The step takes 33 s: eight micro-batches of 4 s are loaded by then, of 5 s 7 s later.
TEST(StepTime, WaitsForDataOnlyWhereLoadingTakesLonger) {
  const std::vector<StageTime> stages(4, stage(1, 2));
  const auto with = [](double seconds) {
    return Json{{"time", {{"data_loading_seconds", seconds}}}};
  };
  EXPECT_EQ(step_of(stages, with(4)).data_loading_seconds, 0);
  const StepTime waiting = step_of(stages, with(5));
  EXPECT_NEAR(waiting.data_loading_seconds, 7, 1e-9);
  EXPECT_NEAR(waiting.iteration_seconds, 40, 1e-9);
}

TEST(StepTime, CountsCommunicationInsideAMicroBatchEachTime) {
  std::vector<StageTime> stages(4, stage(0.75, 1.5));
  for (StageTime& each : stages) {
    each.chunks[0].forward.communication_seconds.tensor = 0.25;
    each.chunks[0].backward.communication_seconds.tensor = 0.5;
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

// 33 s, and what rounding leaves of sums that are equal.
TEST(StepTime, RoundingIsNoCommunication) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) {
    each.chunks[0].reduction = {
        .backward_added_seconds = 3e-14, .end_seconds = 3e-14, .communicates = true};
  }
  const StepTime time = step_of(stages);
  EXPECT_EQ(time.exposed_communication_seconds.data, 0);
  EXPECT_EQ(time.exposed_communication_seconds.pipeline, 0);
}

TEST(StepTime, GradientsHideBehindTheLastBackward) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) {
    each.chunks[0].reduction = {.beside_seconds = 0.9, .end_seconds = 0.1};
  }
  EXPECT_NEAR(step_of(stages).iteration_seconds, 33.1, 1e-9);
  for (StageTime& each : stages) each.chunks[0].reduction = {.end_seconds = 1};
  const StepTime exposed = step_of(stages);
  EXPECT_NEAR(exposed.iteration_seconds, 34, 1e-9);
  EXPECT_NEAR(exposed.exposed_communication_seconds.data, 1, 1e-9);
}

// Where no other rank has the same parameters, what follows the backwards is a kernel.
TEST(StepTime, GradientsThatAreOnlyScaledAreComputation) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) {
    each.chunks[0].reduction = {.end_seconds = 1, .communicates = false};
  }
  const StepTime scaled = step_of(stages);
  EXPECT_NEAR(scaled.iteration_seconds, 34, 1e-9);
  EXPECT_NEAR(scaled.compute_seconds, 25, 1e-9);
  EXPECT_NEAR(scaled.exposed_communication_seconds.data, 0, 1e-9);
}

TEST(StepTime, TheStepEndsWithTheSlowestOptimizer) {
  std::vector<StageTime> stages(4, stage(1, 2));
  stages[0].step_end.compute_seconds = 1;
  stages[3].step_end.compute_seconds = 4;
  const StepTime time = step_of(stages);
  EXPECT_NEAR(time.iteration_seconds, 37, 1e-9);
  EXPECT_EQ(time.stage, 3);
  EXPECT_NEAR(time.optimizer_seconds, 4, 1e-9);
  EXPECT_NEAR(time.bubble_seconds, 9, 1e-9);
}

TEST(StepTime, AStageThatReducesLongestIsReadyLast) {
  std::vector<StageTime> stages(4, stage(1, 2));
  stages[3].chunks[0].reduction.end_seconds = 100;
  const StepTime time = step_of(stages);  // stage 3 ends its backwards at 33 - 3 x 2
  EXPECT_NEAR(time.iteration_seconds, 27 + 100, 1e-9);
  EXPECT_NEAR(time.exposed_communication_seconds.data, 100, 1e-9);
  EXPECT_NEAR(time.bubble_seconds, 3, 1e-9);
}

TEST(StepTime, ParametersHideBehindTheNextForward) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) {
    each.gathers_begin_with_step = true;
    each.chunks[0].gathers = {.seconds = 3, .added_seconds = 2.25};
  }
  // Only the first stage waits: the others' input comes later still.
  const StepTime time = step_of(stages);
  EXPECT_NEAR(time.iteration_seconds, 33 + 2.25, 1e-9);
  EXPECT_NEAR(time.exposed_communication_seconds.data, 2.25, 1e-9);
}

// The first chunk's begin 1.25 s before the end of the updates that come after its own.
TEST(StepTime, ParametersHideBehindTheUpdatesOfOtherChunks) {
  const auto seconds = [](double ahead) {
    std::vector<StageTime> stages(4, stage(1, 2));
    for (StageTime& each : stages) {
      each.gathers_begin_with_step = true;
      each.first_gather_ahead_seconds = ahead;
      each.chunks[0].gathers = {.seconds = 3, .added_seconds = 2.25};
    }
    return step_of(stages).iteration_seconds;
  };
  EXPECT_NEAR(seconds(1.25), 33 + 1, 1e-9);
  EXPECT_NEAR(seconds(5), 33, 1e-9);
}

TEST(StepTime, LaterChunksAreGatheredWithTheStepAfterTheFirst) {
  StageTime stage = two_chunks();
  for (ChunkTime& chunk : stage.chunks) chunk.gathers.seconds = 3;
  EXPECT_NEAR(stage.gathers_begin_seconds(1), 3, 1e-9);
  stage.first_gather_ahead_seconds = 1;
  EXPECT_NEAR(stage.gathers_begin_seconds(0), -1, 1e-9);
  EXPECT_NEAR(stage.gathers_begin_seconds(1), 2, 1e-9);
  stage.first_gather_ahead_seconds = 4;
  EXPECT_NEAR(stage.gathers_begin_seconds(1), 0, 1e-9);
}

// Each stage asks for them when its first input has come.
TEST(StepTime, ParametersThatAreAskedForByTheFirstForwardAreWaitedForOnEveryStage) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) each.chunks[0].gathers = {.seconds = 3, .added_seconds = 2.25};
  const StepTime time = step_of(stages);
  EXPECT_NEAR(time.iteration_seconds, 33 + 4 * 2.25, 1e-9);
  EXPECT_NEAR(time.exposed_communication_seconds.data, 4 * 2.25, 1e-9);
}

TEST(StepTime, ParametersThatAreNotOverlappedAreGatheredAtTheEnd) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) each.gather_seconds = 3;
  EXPECT_NEAR(step_of(stages).iteration_seconds, 33 + 3, 1e-9);
}

// Each of four stages, one after the other, is longer by what the reduction takes from it.
TEST(StepTime, AReductionLengthensTheBackwardBesideIt) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) {
    each.chunks[0].reduction = {
        .beside_seconds = 0.9, .backward_added_seconds = 0.2, .end_seconds = 0.1};
  }
  const StepTime time = step_of(stages);
  EXPECT_NEAR(time.iteration_seconds, 33 + 0.1 + 4 * 0.2, 1e-9);
  EXPECT_NEAR(time.exposed_communication_seconds.data, 0.1 + 4 * 0.2, 1e-9);
}

// The last backwards of two chunks end at 10 and 14, the stage's at 14. Of the second chunk's 10 s
// of calls 9 are left at 10, and those of the first wait for them. In the 4 s until 14 they cost
// four ninths of what they cost beside all their time.
TEST(StepTime, ReductionsOfChunksQueueAndSlowTheStage) {
  StageTime time = two_chunks();
  for (ChunkTime& chunk : time.chunks) {
    chunk.reduction = {.beside_seconds = 10, .left_seconds = 9, .end_seconds = 0.5};
  }
  time.chunks[1].reduction.next_added_seconds = 1.8;
  const double gradients_ready[] = {14, 10};
  const GradientReduction reduction = reduce_gradients(time, gradients_ready, 14);
  EXPECT_NEAR(reduction.ready_seconds, 29 + 0.8 + 2 * 0.5, 1e-9);
}

/// The same work in two chunks on each of four stages.
StepTime interleaved_step(const std::vector<StageTime>& stages) {
  Plan plan = pipeline_plan();
  plan.parallelism.virtual_stages = 2;
  const StepTime time = step_time(plan, ParallelLayout(plan.parallelism), fabric_of(plan), stages);
  EXPECT_NEAR(sum_of_parts(time), time.iteration_seconds, 1e-9);
  return time;
}

TEST(StepTime, InterleavingHalvesTheBubble) {
  const StepTime time = interleaved_step(std::vector<StageTime>(4, two_chunks()));
  EXPECT_NEAR(time.iteration_seconds, 28.5, 1e-9);
  EXPECT_NEAR(time.compute_seconds, 24, 1e-9);
  EXPECT_NEAR(time.bubble_seconds, 4.5, 1e-9);
}

// The second chunk is done with its backwards before the first: its reduction hides whole.
TEST(StepTime, OnlyTheChunkThatEndsLastLeavesABucket) {
  std::vector<StageTime> stages(4, two_chunks());
  for (StageTime& each : stages) {
    each.chunks[0].reduction = {.end_seconds = 0.5};
    each.chunks[1].reduction = {.beside_seconds = 0.5, .left_seconds = 0.5};
  }
  EXPECT_NEAR(interleaved_step(stages).iteration_seconds, 28.5 + 0.5, 1e-9);
}

TEST(StepTime, SendsOverlapWhereTheFrameworkLetsThem) {
  Plan plan = pipeline_plan();
  EXPECT_FALSE(overlaps_sends(plan));
  plan.training.framework = Framework::kPlain;
  EXPECT_TRUE(overlaps_sends(plan));
  plan.training.framework = Framework::kNanotron;
  EXPECT_FALSE(overlaps_sends(plan));
  plan = pipeline_plan();
  plan.parallelism.virtual_stages = 2;
  EXPECT_TRUE(overlaps_sends(plan));
  plan.parallelism.overlap_p2p_communication = false;
  EXPECT_FALSE(overlaps_sends(plan));
}

// Pipelines of six on machines of eight: rank 0's lies in one machine, others do not.
TEST(StepTime, SendsAreThoseOfThePipelineThatLiesWorst) {
  const auto pipeline_seconds = [](int64_t nodes, int64_t gpus) {
    std::vector<StageTime> stages(6, stage(1e-3, 2e-3));
    for (StageTime& each : stages) {
      each.send_forward_bytes = each.send_backward_bytes = 64'000'000;
    }
    const StepTime time =
        step_of(stages,
                {{"model", {{"num_layers", 12}}},
                 {"cluster", {{"nodes", nodes}, {"gpus_per_node", gpus}}},
                 {"parallelism", {{"pipeline", 6}, {"use_tp_pp_dp_mapping", true}}},
                 {"training", {{"global_batch_size", 32}}}});
    return time.exposed_communication_seconds.pipeline;
  };
  EXPECT_GT(pipeline_seconds(3, 8), 1.5 * pipeline_seconds(4, 6));
}

}  // namespace
}  // namespace estimator
