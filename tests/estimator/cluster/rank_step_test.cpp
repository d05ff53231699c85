#include "estimator/cluster/rank_step.h"

#include <gtest/gtest.h>

#include "estimator/base/fields.h"
#include "estimator/resolve/plan_spec.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {
namespace {

Plan plan_of_2000_tokens() {
  return resolve_plan(
      {.tree = Json{{"model", "gpt2"},
                    {"cluster", {{"gpu", "a100"}, {"nodes", 1}, {"gpus_per_node", 1}}},
                    {"training", {{"sequence_length", 1000}, {"micro_batch_size", 2}}}},
       .context = {}});
}

RankStep rank_step_with(std::vector<MemoryPoint> memory, double step_seconds = 10) {
  RankProfile profile;
  profile.operators = {{.name = "aten::mm", .flops = 300, .bytes = 10, .count = 4},
                       {.name = "aten::add", .flops = 0, .bytes = 20, .count = 1}};
  StepTimeline timeline{.name = "", .iteration_seconds = 10, .stages = {}};
  timeline.stages.push_back({.stage = 0, .rank = 0, .memory = std::move(memory)});
  RankClassEstimate rank;
  rank.allocated_peak_bytes = 6000;
  return rank_step(plan_of_2000_tokens(), rank, profile, timeline, step_seconds);
}

// 4 x 300 FLOP on 4 x 10 + 20 bytes in 10 s; 2 x 1,000 tokens.
TEST(RankStep, SumsTheKernelsOfOneIteration) {
  const RankStep step = rank_step_with({});
  EXPECT_DOUBLE_EQ(step.flops_per_byte, 20);
  EXPECT_DOUBLE_EQ(step.flops_per_second, 120);
  EXPECT_DOUBLE_EQ(step.moved_bytes_per_second, 6);
  EXPECT_DOUBLE_EQ(step.peak_bytes_per_token, 3);
  EXPECT_FALSE(step.mean_allocated_bytes);
}

// The same kernels in a step that was measured to take twice as long.
TEST(RankStep, RatesAreOverTheMeasuredStep) {
  const RankStep step = rank_step_with({{1, 500}, {5, 100}}, 20);
  EXPECT_DOUBLE_EQ(step.flops_per_second, 60);
  EXPECT_DOUBLE_EQ(step.moved_bytes_per_second, 3);
  EXPECT_EQ(step.mean_allocated_bytes, 260);
}

// 100 bytes for 1 s, as at the end; 500 for 4 s; 100 for 5 s.
TEST(RankStep, TheMeanIsOverTheTimeOfTheStep) {
  EXPECT_EQ(rank_step_with({{1, 500}, {5, 100}}).mean_allocated_bytes, 260);
}

}  // namespace
}  // namespace estimator
