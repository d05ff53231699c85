#include "estimator/compose/held_forwards.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

/// The second of four stages, with two chunks: four forwards of the first and four of the second
/// chunk, and then a forward and a backward in turn.
double most_held(const HeldBytes& bytes) {
  return most_held_bytes(
      {.stages = 4, .micro_batches = 64, .chunks = 2}, /*stage=*/1, /*micro_batches=*/16, bytes);
}

// The second forward of a pair makes it nine.
TEST(HeldForwards, AreThoseOfTheWarmUpAndOneMore) {
  EXPECT_EQ(most_held({.of_forward = {1, 1}, .of_ended = {0, 0}}), 9);
}

// Four backwards of the second chunk stand beside four forwards of the first: of these there are
// eight, as the fourth backward begins, and one of the second.
TEST(HeldForwards, AreMostlyOfTheFirstChunkWhenTheSecondEnds) {
  EXPECT_EQ(most_held({.of_forward = {11, 7}, .of_ended = {0, 0}}), 8 * 11 + 7);
  EXPECT_EQ(most_held({.of_forward = {7, 11}, .of_ended = {0, 0}}), 5 * 7 + 4 * 11);
}

// When the second chunk has none in flight, it begins one before the next backward.
TEST(HeldForwards, LeaveWhatAChunkHoldsUntilItsNextForward) {
  const HeldBytes bytes{.of_forward = {1, 1, 1}, .of_ended = {0, 1, 1}};
  const ScheduleShape shape{.stages = 2, .micro_batches = 64, .chunks = 3};
  // The last of two stages: two forwards of each of the first two chunks, one of the third, and a
  // backward of it in turn. As the second chunk's first backward begins, the third has ended.
  EXPECT_EQ(most_held_bytes(shape, /*stage=*/1, /*micro_batches=*/6, bytes), 6);
}

// Of four micro-batches, the second chunk has had all its backwards when the first begins.
TEST(HeldForwards, AreCountedAtTheBackwardsOfOneChunk) {
  const HeldBytes bytes{.of_forward = {7, 11}, .of_ended = {0, 0}};
  const ScheduleShape shape{.stages = 4, .micro_batches = 64, .chunks = 2};
  EXPECT_EQ(most_held_bytes(shape, 1, 16, bytes, /*of_chunk=*/0), 5 * 7 + 4 * 11);
  EXPECT_EQ(most_held_bytes(shape, 1, 4, bytes, /*of_chunk=*/0), 4 * 7);
}

TEST(HeldForwards, HoldAPairedForwardUntilItsBackwardEnds) {
  EXPECT_EQ(most_held({.of_forward = {1, 1}, .of_ended = {0, 0}, .of_pair = 0.5}), 9.5);
}

}  // namespace
}  // namespace estimator
