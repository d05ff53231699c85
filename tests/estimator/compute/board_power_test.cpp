#include "estimator/compute/board_power.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

const BoardPower& board(const char* gpu) { return *board_power(*find_gpu(gpu)); }

/// FLOP per second of products of 8,192 cubed, one after the other, which run at 803 TFLOP/s at
/// full speed on an H200.
double sustained(const char* gpu) {
  constexpr double kFullSpeed = 803e12, kSeconds = 1;
  const BoardPower& power = board(gpu);
  const double joules = power.product_joules("BFloat16", kFullSpeed * kSeconds);
  return kFullSpeed * speed_within_limit(power, {joules, kSeconds, kSeconds}, 1);
}

// Alone for seconds, an H200 ran them at 656 TFLOP/s. An H100 at 500 W ran at 575, 585 and 546
// (pytorch/FBGEMM pull request 2546), of which nothing is in the table.
TEST(BoardPower, DecidesWhatProductsSustain) {
  EXPECT_NEAR(sustained("h200-sxm") / 656e12, 1, 0.02);
  EXPECT_NEAR(sustained("h100-sxm-96") / 569e12, 1, 0.06);
}

// cuDNN's forward and a wait by turns: 585 TFLOP/s at 77 % of the time and 536 without a wait.
TEST(BoardPower, LeavesMoreToAttentionBesideOtherWork) {
  const BoardPower& power = board("h200-sxm");
  constexpr double kRate = 619e12;
  const auto rate_at = [&](double share) {
    const double joules = power.attention_joules(kRate * share, share);
    return kRate * speed_within_limit(power, {joules, 1, share}, 1) / 1e12;
  };
  EXPECT_NEAR(rate_at(1), 536, 20);
  EXPECT_NEAR(rate_at(0.75), 585, 20);
  EXPECT_NEAR(rate_at(0.46), 619, 1);
}

TEST(BoardPower, LeavesWorkThatWaitsForMemoryAtFullSpeed) {
  const BoardPower& power = board("h100-sxm");
  const StepEnergy copies{.joules = power.memory_joules(1), .seconds = 1};
  EXPECT_EQ(speed_within_limit(power, copies, 1), 1);
  EXPECT_NEAR(power.watts(copies.joules, 1, 1), 627, 1);
}

TEST(BoardPower, FindsTheSameSpeedWhateverWasPlayed) {
  const BoardPower& power = board("h100-sxm");
  const double joules = power.product_joules("BFloat16", 800e12);
  const double from_full = speed_within_limit(power, {joules, 1.2, 1}, 1);
  EXPECT_LT(from_full, 0.95);
  const StepEnergy slowed{joules, 0.2 + 1 / from_full, 1 / from_full};
  EXPECT_NEAR(speed_within_limit(power, slowed, from_full), from_full, 1e-3);
}

TEST(BoardPower, TakesATypeThatNobodyMeasuredForBf16) {
  const BoardPower& power = board("h100-sxm");
  EXPECT_EQ(power.product_joules("Char", 1e12), power.product_joules("BFloat16", 1e12));
  EXPECT_LT(power.product_joules("Float8_e4m3fn", 1e12), power.product_joules("BFloat16", 1e12));
}

TEST(BoardPower, IsNotKnownOfOtherChips) {
  EXPECT_EQ(board_power(*find_gpu("a100-sxm-80")), nullptr);
}

}  // namespace
}  // namespace estimator
