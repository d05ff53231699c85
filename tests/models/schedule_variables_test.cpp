// What a schedule's variables hold, seen by how many hold a tensor.
#include "models/pipeline/schedule_variables.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace models {
namespace {

constexpr bool kPairFollows = true;

// input_tensor of forward_backward_pipelining_with_interleaving in
// megatron/core/pipeline_parallel/schedules.py: what the warm-up receives last is the input of the
// first forward that is paired with a backward.
TEST(ScheduleVariables, HoldTheInputThatTheWarmUpReceivedLastToTheEnd) {
  ScheduleVariables variables({.holds = true, .interleaved = true, .overlaps_messages = true});
  const at::Tensor of_warm_up = at::ones({1}), first = at::ones({1}), second = at::ones({1});
  variables.forward_started(0, of_warm_up, !kPairFollows);
  variables.forward_started(0, first, kPairFollows);
  variables.forward_started(0, second, kPairFollows);
  EXPECT_EQ(of_warm_up.use_count(), 1);
  EXPECT_EQ(first.use_count(), 2);
  variables.iteration_ended();
  EXPECT_EQ(first.use_count(), 1);
  EXPECT_EQ(second.use_count(), 2) << "the chunk's last input";
}

TEST(ScheduleVariables, HoldNoInputOfTheWarmUpWhereEachStepReceivesTheNext) {
  ScheduleVariables variables({.holds = true, .interleaved = true});
  const at::Tensor first = at::ones({1}), second = at::ones({1});
  variables.forward_started(0, first, kPairFollows);
  variables.forward_started(0, second, kPairFollows);
  EXPECT_EQ(first.use_count(), 1);
}

}  // namespace
}  // namespace models
