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

// recv_prev_wait_handle there: if the warm-up overlaps, too, it is the handle of the last message
// for which the warm-up waited, and holds its tensor.
TEST(ScheduleVariables, HoldTheInputForWhichAnOverlappedWarmUpWaitedLast) {
  ScheduleVariables variables(
      {.holds = true, .interleaved = true, .overlaps_messages = true, .overlaps_warm_up = true});
  const at::Tensor early = at::ones({1}), late = at::ones({1}), paired = at::ones({1});
  const at::Tensor last = at::ones({1});
  variables.forward_started(0, early, !kPairFollows);
  variables.forward_started(0, late, !kPairFollows);
  variables.forward_started(0, at::Tensor(), !kPairFollows);  // the first piece receives nothing
  variables.forward_started(0, paired, kPairFollows);
  variables.forward_started(0, last, kPairFollows);
  EXPECT_EQ(early.use_count(), 1);
  EXPECT_EQ(late.use_count(), 2);
  EXPECT_EQ(paired.use_count(), 1);
  variables.iteration_ended();
  EXPECT_EQ(late.use_count(), 1);
}

TEST(ScheduleVariables, HoldNoInputOfTheWarmUpWhereEachStepReceivesTheNext) {
  ScheduleVariables variables({.holds = true, .interleaved = true});
  const at::Tensor first = at::ones({1}), second = at::ones({1});
  variables.forward_started(0, first, kPairFollows);
  variables.forward_started(0, second, kPairFollows);
  EXPECT_EQ(first.use_count(), 1);
}

// send_forward_recv_forward there, and send_forward_recv_backward where stages have one chunk.
TEST(ScheduleVariables, HoldTheOutputUntilWhatIsReceivedNextHasItsMemory) {
  for (const bool interleaved : {false, true}) {
    ScheduleVariables variables({.holds = true, .interleaved = interleaved});
    const at::Tensor of_warm_up = at::ones({1}), paired = at::ones({1});
    variables.forward_ended(of_warm_up, !kPairFollows);
    EXPECT_EQ(of_warm_up.use_count(), 2);
    variables.receives_started();
    EXPECT_EQ(of_warm_up.use_count(), 1);
    variables.forward_ended(paired, kPairFollows);
    variables.receives_started();
    EXPECT_EQ(paired.use_count(), interleaved ? 2 : 1) << "until the paired backward is over";
  }
}

}  // namespace
}  // namespace models
