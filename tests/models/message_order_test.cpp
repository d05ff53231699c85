// When stages receive, worked by hand after Megatron-LM's
// forward_backward_pipelining_with_interleaving.
#include "models/pipeline/message_order.h"

#include <gtest/gtest.h>

namespace models {
namespace {

using estimator::PipelineStep;
using estimator::StepKind;

constexpr int64_t kStages = 2;

/// Two stages of two chunks.
Steps steps_of(int64_t stage, int64_t micro_batches, int64_t group) {
  return estimator::stage_steps(
      {.stages = kStages, .micro_batches = micro_batches, .chunks = 2, .group_size = group}, stage);
}

PipelineStep forward(int32_t micro_batch, int32_t chunk) {
  return {StepKind::kForward, micro_batch, chunk};
}
PipelineStep backward(int32_t micro_batch, int32_t chunk) {
  return {StepKind::kBackward, micro_batch, chunk};
}

// The first stage warms up with 2 + 2 = 4 forwards of 2 micro-batches: 0.0 1.0 0.1 1.1, and then
// pairs the forward 2.0 with the backward 0.1.
TEST(MessageOrder, ReceivesTheNextInputAndAfterTheWarmUpTheFirstGradient) {
  const Steps steps = steps_of(0, 4, 2);
  const MessageRules rules{.stages = kStages, .stage = 0};
  ASSERT_EQ(steps[4], forward(2, 0));
  EXPECT_TRUE(is_paired(steps, 4));
  EXPECT_EQ(received_after(steps, 1, rules), (Steps{forward(0, 1)}));
  EXPECT_EQ(received_after(steps, 3, rules), (Steps{backward(0, 1)}));  // 2.0 needs no message
  EXPECT_EQ(received_before(steps, 1, rules), std::nullopt);
}

// In groups of 3 the last stage has done 0.0 when the first has done 1.0, though the first goes on
// with 2.0 before 0.1.
TEST(MessageOrder, OfTheFirstStageReceivesInputsBeforeTheirTurnInLargerGroups) {
  const Steps steps = steps_of(0, 6, 3);
  const MessageRules rules{.stages = kStages, .stage = 0};
  EXPECT_EQ(steps[2], forward(2, 0));
  EXPECT_EQ(received_after(steps, 0, rules), Steps{});
  EXPECT_EQ(received_after(steps, 1, rules), (Steps{forward(0, 1)}));
  EXPECT_EQ(received_after(steps, 2, rules), (Steps{forward(1, 1)}));
}

// The last stage warms up with 2 forwards: 0.0 1.0.
TEST(MessageOrder, OfAnOverlappedWarmUpAndFlushReceivesBeforeTheStep) {
  const Steps steps = steps_of(1, 4, 2);
  const MessageRules rules{.stages = kStages, .stage = 1, .overlaps_warm_up = true};
  EXPECT_EQ(received_before(steps, 0, rules), forward(1, 0));
  EXPECT_EQ(received_after(steps, 0, rules), Steps{});
  EXPECT_EQ(received_before(steps, 1, rules), forward(0, 1));
  EXPECT_EQ(received_before(steps, 2, rules), std::nullopt);  // a pair
  // The flush of the last stage receives after each backward, that of the first before.
  EXPECT_EQ(received_before(steps, steps.size() - 2, rules), std::nullopt);
  const Steps first = steps_of(0, 4, 2);
  const MessageRules of_first{.stages = kStages, .stage = 0, .overlaps_warm_up = true};
  EXPECT_EQ(received_before(first, first.size() - 2, of_first), first.back());
  EXPECT_EQ(received_before(first, 1, of_first), std::nullopt);
}

TEST(NextChunks, AreEachOnceInTheOrderOfTheSteps) {
  const estimator::ScheduleShape shape{.stages = 2, .micro_batches = 2, .chunks = 4};
  const Steps steps = stage_steps(shape, 1);  // the forwards of two micro-batches, chunk by chunk
  EXPECT_EQ(next_chunks(steps, 0, 3), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(next_chunks(steps, 1, 3), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(next_chunks(steps, 2, 3), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(next_chunks(steps, steps.size() - 1, 3), std::vector<int64_t>{0});
}

}  // namespace
}  // namespace models
