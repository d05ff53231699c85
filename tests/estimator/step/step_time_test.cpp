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

TEST(StepTime, GradientsHideBehindTheLastBackward) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) {
    each.chunks[0].reduce_gradients = {.sum_seconds = 1, .buckets = 10, .overlappable = true};
  }
  EXPECT_NEAR(step_of(stages).iteration_seconds, 33.1, 1e-9);
  for (StageTime& each : stages) each.chunks[0].reduce_gradients.overlappable = false;
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
  stages[3].chunks[0].reduce_gradients = {.sum_seconds = 100, .buckets = 1, .overlappable = false};
  const StepTime time = step_of(stages);  // stage 3 ends its backwards at 33 - 3 x 2
  EXPECT_NEAR(time.iteration_seconds, 27 + 100, 1e-9);
  EXPECT_NEAR(time.exposed_communication_seconds.data, 100, 1e-9);
  EXPECT_NEAR(time.bubble_seconds, 3, 1e-9);
}

TEST(StepTime, ParametersHideBehindTheNextForward) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) {
    each.chunks[0].gather_parameters = {.sum_seconds = 3, .buckets = 6, .overlappable = true};
  }
  // The last bucket comes at 3, and a sixth of the first forward of 1 is left then. Only the first
  // stage waits: the others' input comes later still.
  const StepTime time = step_of(stages);
  EXPECT_NEAR(time.iteration_seconds, 33 + 3 + 1.0 / 6 - 1, 1e-9);
  EXPECT_NEAR(time.exposed_communication_seconds.data, 3 + 1.0 / 6 - 1, 1e-9);
}

TEST(StepTime, ParametersThatAreNotOverlappedAreGatheredAtTheEnd) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages)
    each.chunks[0].gather_parameters = {.sum_seconds = 3, .buckets = 6};
  EXPECT_NEAR(step_of(stages).iteration_seconds, 33 + 3, 1e-9);
}

// The reduction hides but for a tenth; the other 0.9 take a fifth of the compute beside them.
TEST(StepTime, CommunicationBesideComputeSlowsIt) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) {
    each.chunks[0].reduce_gradients = {
        .sum_seconds = 1, .buckets = 10, .overlappable = true, .compute_share = 0.2};
  }
  const StepTime time = step_of(stages);
  EXPECT_NEAR(time.iteration_seconds, 33 + 0.1 + 0.2 * 0.9, 1e-9);
  EXPECT_NEAR(time.exposed_communication_seconds.data, 0.1 + 0.2 * 0.9, 1e-9);
}

// Nine tenths of a reduction of 1 run beside the last backward, and cost each of four stages, one
// after the other, a quarter of that.
TEST(StepTime, AReductionLengthensTheBackwardThatNeedsItsPort) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) {
    each.chunks[0].reduce_gradients = {
        .sum_seconds = 1, .buckets = 10, .overlappable = true, .port_share = 0.25};
  }
  const StepTime time = step_of(stages);
  EXPECT_NEAR(time.iteration_seconds, 33 + 0.1 + 4 * 0.25 * 0.9, 1e-9);
  EXPECT_NEAR(time.exposed_communication_seconds.data, 0.1 + 4 * 0.25 * 0.9, 1e-9);
}

// A port carries each byte in its time, hidden or not: where a backward does nothing but
// communicate, on the port of the reduction, they take together what they take one after the other.
TEST(StepTime, NothingHidesBesideCommunicationOnTheSamePort) {
  const Plan plan = small_plan({{"training", {{"global_batch_size", 64}}}});
  ASSERT_EQ(plan.micro_batches(), 8);
  for (const double reduce_seconds : {0.5, 2.0, 10.0}) {
    StageTime only = stage(1, 0);
    only.chunks[0].backward.communication_seconds.tensor = 2;
    only.chunks[0].reduce_gradients = {.sum_seconds = reduce_seconds,
                                       .buckets = 1000,
                                       .overlappable = true,
                                       .use = {.link = 1},
                                       .port_share = 1};
    const StepTime time =
        step_time(plan, ParallelLayout(plan.parallelism), fabric_of(plan), {only});
    EXPECT_NEAR(time.iteration_seconds, 8 * 3 + reduce_seconds, 1e-9);
  }
}

// Two chunks, whose last backwards are 2 s of calls each and end at 10 and 14, twice as long as
// alone beside reductions of 10 s. From the first full bucket at 6 on, the port carries 2 x (10 +
// 2) s.
TEST(StepTime, ReductionsThatQueueShareThePortWithEveryBackward) {
  StageTime time = two_chunks();
  std::vector<ChunkDuration> durations;
  for (ChunkTime& chunk : time.chunks) {
    chunk.reduce_gradients = {
        .sum_seconds = 10, .buckets = 1000, .overlappable = true, .use = {.link = 1}};
    durations.push_back(
        {.backward_seconds = 2, .last_backward_added_seconds = chunk.reduce_gradients.beside(2)});
  }
  const double gradients_ready[] = {14, 10};
  const GradientReduction reduction = reduce_gradients(time, durations.data(), gradients_ready, 14);
  EXPECT_NEAR(reduction.ready_seconds, 6 + 2 * (10 + 2), 1e-9);
}

/// How much longer a step of four stages takes when reductions of one bucket need `use` of the
/// ports, longer than the sends beside them.
double longer_by(const PortUse& use, int64_t send_bytes, const Json& changes) {
  std::vector<StageTime> stages(4, stage(1, 2));
  for (StageTime& each : stages) {
    each.send_forward_bytes = each.send_backward_bytes = send_bytes;
    each.chunks[0].reduce_gradients = {.sum_seconds = 1, .buckets = 1, .overlappable = true};
  }
  const double alone = step_of(stages, changes).iteration_seconds;
  for (StageTime& each : stages) each.chunks[0].reduce_gradients.use = use;
  return step_of(stages, changes).iteration_seconds - alone;
}

// The send of the last gradients, from three stages one after the other, takes the time of its
// bytes longer beside a reduction that fills the port: 37 MB are 0.1 ms of NVLink, 48 MB 1 ms of a
// NIC, whose other half carries the reduction. Half a port leaves the send all but its latency.
TEST(StepTime, TheLastSendSharesItsPortWithTheReduction) {
  const Json one_machine = Json::object();
  const Json machines = {{"cluster", {{"nodes", 4}, {"gpus_per_node", 1}}}};
  EXPECT_NEAR(longer_by({.link = 1}, 37'000'000, one_machine), 3 * 0.1e-3, 1e-9);
  EXPECT_NEAR(longer_by({.nic = 1}, 37'000'000, one_machine), 0, 1e-12);
  EXPECT_NEAR(longer_by({.nic = 1}, 48'000'000, machines), 3 * 1e-3, 1e-9);
  EXPECT_NEAR(longer_by({.link = 1}, 48'000'000, machines), 0, 1e-12);
  EXPECT_LT(longer_by({.nic = 0.5}, 48'000'000, machines), 3 * 0.5e-3);
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
    for (ChunkTime& chunk : each.chunks) {
      chunk.reduce_gradients = {.sum_seconds = 0.5, .buckets = 1, .overlappable = true};
    }
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

}  // namespace
}  // namespace estimator
