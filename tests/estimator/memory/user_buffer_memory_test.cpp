#include "estimator/memory/user_buffer_memory.h"

#include <gtest/gtest.h>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

Plan plan_with(bool overlap, int64_t tensor) {
  return small_plan(
      {{"parallelism",
        {{"tensor", tensor}, {"sequence_parallel", true}, {"tp_comm_overlap", overlap}}},
       {"training",
        {{"micro_batch_size", 2}, {"global_batch_size", 16}, {"sequence_length", 128}}}});
}

TEST(UserBufferMemory, IsTenBuffersOfTheWholeSequence) {
  const auto term = user_buffer_memory(plan_with(true, 4));
  ASSERT_TRUE(term);
  EXPECT_EQ(term->value_bytes, 10 * 128 * 2 * 64 * 2);  // tokens x hidden size x bytes
  EXPECT_EQ(term->source, Source::kComputed);
}

TEST(UserBufferMemory, IsNoneWithoutOverlapOrTensorRanks) {
  EXPECT_FALSE(user_buffer_memory(plan_with(false, 4)));
  EXPECT_FALSE(user_buffer_memory(plan_with(true, 1)));
}

}  // namespace
}  // namespace estimator
