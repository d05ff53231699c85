// The trace is read back and its step is run through again.
#include "estimator/step/chrome_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "estimator/resolve/resolve_plan.h"
#include "tests/estimator/test_plans.h"
#include "tests/paths.h"

namespace estimator {
namespace {

/// Two chunks on each of 4 stages, 8 micro-batches, sends, overlapped calls over the data ranks,
/// and an optimizer.
StepTimeline interleaved_timeline(double backward_added_seconds = 0) {
  Plan plan = pipeline_plan();
  plan.parallelism.virtual_stages = 2;
  ChunkTime chunk;
  chunk.forward.compute_seconds = 0.4e-3;
  chunk.forward.communication_seconds.tensor = 0.1e-3;
  chunk.backward.compute_seconds = 1e-3;
  chunk.reduction = {.beside_seconds = 1e-3,
                     .backward_added_seconds = backward_added_seconds,
                     .left_seconds = 0.25e-3,
                     .end_seconds = 0.1e-3};
  chunk.gathers = {.seconds = 2e-3, .added_seconds = 1.7e-3};
  StageTime stage;
  stage.chunks = {chunk, chunk};
  stage.gathers_begin_with_step = true;
  stage.send_forward_bytes = stage.send_backward_bytes = 1 << 20;
  stage.step_end.compute_seconds = 0.5e-3;
  stage.step_end.communication_seconds.tensor = 0.1e-3;
  const std::vector<StageTime> stages(4, stage);
  const StepTimeline timeline =
      step_timeline(plan, ParallelLayout(plan.parallelism), fabric_of(plan), stages);
  EXPECT_DOUBLE_EQ(
      timeline.iteration_seconds,
      step_time(plan, ParallelLayout(plan.parallelism), fabric_of(plan), stages).iteration_seconds);
  return timeline;
}

struct Slice {
  std::string name;
  double begin, end;
  Json args;
};

/// Complete events by process and thread, in the order of their begin.
std::map<std::pair<int, int>, std::vector<Slice>> slices_of(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<Slice>> slices;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts"), duration = event.at("dur");
    slices[{event.at("pid"), event.at("tid")}].push_back(
        {event.at("name"), begin, begin + duration, event.at("args")});
  }
  return slices;
}

class ChromeTrace : public testing::Test {
 protected:
  const StepTimeline timeline = interleaved_timeline();
  const Json trace = Json::parse(chrome_trace(timeline));
  static constexpr double kRounding = 2e-3;  // us
};

TEST_F(ChromeTrace, NamesAProcessForEachStageAndItsThreads) {
  std::map<int, std::string> processes;
  std::set<std::string> threads;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("name") == "process_name") processes[event.at("pid")] = event["args"]["name"];
    if (event.at("name") == "thread_name") threads.insert(event["args"]["name"]);
  }
  ASSERT_EQ(processes.size(), 4u);
  EXPECT_EQ(processes[3], "stage 3 (rank 3)");
  EXPECT_EQ(threads,
            (std::set<std::string>{"compute", "pipeline communication", "data communication"}));
}

TEST_F(ChromeTrace, AGpuDoesOneThingAtATime) {
  const auto threads = slices_of(trace);
  ASSERT_FALSE(threads.empty());
  for (const auto& [thread, slices] : threads) {
    if (thread.second == static_cast<int>(Track::kPipeline)) continue;
    for (std::size_t i = 1; i < slices.size(); ++i) {
      EXPECT_GE(slices[i].begin, slices[i - 1].end - kRounding)
          << "stage " << thread.first << ", " << slices[i].name;
    }
  }
}

/// Where Perfetto draws it: json_utils.cc, CoerceToTs, cuts off what is below a nanosecond.
int64_t as_read(const Json& microseconds) {
  return static_cast<int64_t>(microseconds.get<double>() * 1000);
}

/// How many slices Perfetto drops, as they overlap the one before on their thread without lying in
/// it (slice_drop_overlapping_complete_event).
int dropped_slices(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<int64_t, int64_t>>> slices;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const int64_t begin = as_read(event.at("ts"));
    slices[{event.at("pid"), event.at("tid")}].push_back({begin, begin + as_read(event.at("dur"))});
  }
  int dropped = 0;
  for (auto& [thread, of_thread] : slices) {
    std::sort(of_thread.begin(), of_thread.end());
    int64_t end = 0;
    for (const auto& slice : of_thread) {
      dropped += slice.first < end;
      end = std::max(end, slice.second);
    }
  }
  return dropped;
}

TEST_F(ChromeTrace, NoSliceOverlapsAnotherOfItsThread) {
  EXPECT_EQ(dropped_slices(trace), 0);
  EXPECT_EQ(dropped_slices(Json::parse(chrome_trace(interleaved_timeline(0.2e-3)))), 0);
}

// Times that are no whole nanoseconds, in all the plans' schedules; messages that take as long as
// steps overlap each other in both directions.
TEST(ChromeTraceOfPlans, NoSliceOverlapsAnotherOfItsThread) {
  std::mt19937 random(4);
  const auto seconds = [&](double most) {
    return std::uniform_real_distribution<>(most / 10, most)(random);
  };
  int plans = 0;
  for (const auto& entry : std::filesystem::directory_iterator(tests::kPlans)) {
    const Plan plan = resolve_plan(Json::parse(std::ifstream(entry.path())), {});
    std::vector<StageTime> stages(static_cast<std::size_t>(plan.parallelism.pipeline));
    for (StageTime& stage : stages) {
      stage.gathers_begin_with_step = plan.parallelism.virtual_stages > 1;
      for (int64_t c = 0; c < plan.parallelism.virtual_stages; ++c) {
        ChunkTime chunk;
        chunk.forward.compute_seconds = seconds(1e-2);
        chunk.backward.compute_seconds = seconds(2e-2);
        chunk.reduction = {.beside_seconds = seconds(0.1),
                           .backward_added_seconds = seconds(0.01),
                           .end_seconds = seconds(0.01)};
        chunk.reduction.left_seconds = seconds(chunk.reduction.beside_seconds);
        chunk.gathers.seconds = seconds(0.1);
        chunk.gathers.added_seconds = seconds(chunk.gathers.seconds);
        stage.chunks.push_back(chunk);
      }
      stage.send_forward_bytes = stage.send_backward_bytes = int64_t{1} << 28;
      stage.step_end.compute_seconds = seconds(1e-2);
      stage.step_end.communication_seconds.tensor = seconds(1e-3);
    }
    const StepTimeline timeline =
        step_timeline(plan, ParallelLayout(plan.parallelism), fabric_of(plan), stages);
    EXPECT_EQ(dropped_slices(Json::parse(chrome_trace(timeline))), 0) << entry.path();
    ++plans;
  }
  EXPECT_GE(plans, 9);
}

TEST_F(ChromeTrace, EachMicroBatchGoesThroughEachChunkOnceEachWay) {
  auto slices = slices_of(trace);
  for (int stage = 0; stage < 4; ++stage) {
    std::set<std::tuple<std::string, int, int>> steps;
    for (const Slice& slice : slices[{stage, static_cast<int>(Track::kCompute)}]) {
      if (slice.name == "optimizer") continue;
      EXPECT_TRUE(
          steps.insert({slice.name, slice.args.at("micro_batch"), slice.args.at("chunk")}).second);
      const bool forward = slice.name == "forward";
      EXPECT_NEAR(slice.end - slice.begin, forward ? 500 : 1000, kRounding);
      EXPECT_EQ(slice.args.value("communication_us", 0.0), forward ? 100 : 0);
    }
    EXPECT_EQ(steps.size(), 2u * 8 * 2);
  }
}

// 3 boundaries between 4 stages and one from the last back to the first, 8 micro-batches each way.
TEST_F(ChromeTrace, ArrowsLeadFromASendToTheStepThatItIsFor) {
  std::map<int, Json> begins, ends;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "s") begins[event.at("id")] = event;
    if (event.at("ph") == "f") ends[event.at("id")] = event;
  }
  EXPECT_EQ(begins.size(), 2u * 7 * 8);
  ASSERT_EQ(ends.size(), begins.size());
  auto slices = slices_of(trace);
  for (const auto& [id, begin] : begins) {
    const Json& end = ends.at(id);
    const auto slice_at = [&](const Json& event) {
      for (const Slice& slice : slices[{event.at("pid"), event.at("tid")}]) {
        if (slice.begin == event.at("ts").get<double>()) return slice;
      }
      ADD_FAILURE() << "an arrow ends at no slice: " << event;
      return Slice{};
    };
    const Slice send = slice_at(begin), step = slice_at(end);
    EXPECT_EQ(step.args.at("micro_batch"), send.args.at("micro_batch"));
    EXPECT_EQ(step.name, send.name == "send activations" ? "forward" : "backward");
    EXPECT_GE(step.begin, send.end - kRounding);
    EXPECT_EQ(send.args.at("to_stage"), end.at("pid"));
  }
}

// The same with loaders that take a second for each micro-batch: the rest of each second is waited.
// 8 micro-batches of 3 s; the last one's forward is at 21 s.
TEST(StepTimeline, ShowsTheWorksOfTheLastMicroBatchInTheirModules) {
  const Plan plan = small_plan({{"training", {{"global_batch_size", 64}}}});
  ASSERT_EQ(plan.micro_batches(), 8);
  ChunkTime chunk;
  chunk.forward.compute_seconds = 1;
  chunk.backward.compute_seconds = 2;
  chunk.works = {{.module = "layers.0.mlp", .name = "aten::mm", .end_seconds = 0.25},
                 {.module = "layers.0.self_attention",
                  .name = "all_gather",
                  .group = GroupKind::kTensor,
                  .begin_seconds = 0.25,
                  .end_seconds = 1},
                 {.direction = Direction::kBackward,
                  .module = "layers.0.mlp",
                  .name = "aten::mm",
                  .stream = 3,
                  .begin_seconds = 0.5,
                  .end_seconds = 2}};
  const StepTimeline timeline = step_timeline(
      plan, ParallelLayout(plan.parallelism), fabric_of(plan), {StageTime{.chunks = {chunk}}});
  std::map<std::string, std::set<std::pair<double, double>>> times;  // in seconds, by name
  for (const auto& [thread, slices] : slices_of(Json::parse(chrome_trace(timeline)))) {
    for (const Slice& slice : slices)
      times[slice.name].insert({slice.begin / 1e6, slice.end / 1e6});
  }
  using Times = std::set<std::pair<double, double>>;
  EXPECT_EQ(times["aten::mm"], (Times{{21, 21.25}, {22.5, 24}}));
  EXPECT_EQ(times["all_gather"], (Times{{21.25, 22}}));
  EXPECT_EQ(times["layers.0"], (Times{{21, 22}}));
  EXPECT_EQ(times["layers.0.self_attention"], (Times{{21.25, 22}}));
}

TEST(StepTimeline, ShowsTheWaitForDataAtItsEnd) {
  const Plan plan = pipeline_plan({{"time", {{"data_loading_seconds", 1}}}});
  ChunkTime chunk;
  chunk.forward.compute_seconds = 0.01;
  chunk.backward.compute_seconds = 0.02;
  const std::vector<StageTime> stages(4, StageTime{.chunks = {chunk}});
  const StepTimeline timeline =
      step_timeline(plan, ParallelLayout(plan.parallelism), fabric_of(plan), stages);
  EXPECT_DOUBLE_EQ(timeline.iteration_seconds, 8);
  for (const StageTimeline& stage : timeline.stages) {
    const TimelineEvent& last = stage.events.back();
    EXPECT_EQ(last.activity, Activity::kDataLoading);
    EXPECT_NEAR(last.begin_seconds, 0.33, 1e-9);
    EXPECT_DOUBLE_EQ(last.end_seconds, 8);
  }
}

TEST(StepTimeline, ShowsTheLastBackwardAsLongAsItIs) {
  int64_t backwards = 0;
  const StepTimeline timeline = interleaved_timeline(0.2e-3);
  for (const StageTimeline& stage : timeline.stages) {
    for (const TimelineEvent& event : stage.events) {
      if (event.activity != Activity::kBackward) continue;
      ++backwards;
      const double added = event.micro_batch == 7 ? 0.2e-3 : 0;
      EXPECT_NEAR(event.end_seconds - event.begin_seconds, 1e-3 + added, 1e-12);
    }
  }
  EXPECT_GT(backwards, 0);
}

TEST_F(ChromeTrace, EndsWithTheIteration) {
  double end = 0;
  for (const auto& [thread, slices] : slices_of(trace)) {
    for (const Slice& slice : slices) end = std::max(end, slice.end);
  }
  EXPECT_NEAR(end, timeline.iteration_seconds * 1e6, kRounding);
  EXPECT_EQ(trace.at("otherData").at("iteration_seconds"), timeline.iteration_seconds);
}

}  // namespace
}  // namespace estimator
