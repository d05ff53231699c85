#include "sim/verify/verification.h"

#include <gtest/gtest.h>

#include <limits>

#include "sim/verify/tolerance.h"

namespace sim {
namespace {

using estimator::Dtype;

RankVerification rank_with_loss(int64_t rank, int64_t tensor, double loss) {
  RankVerification verification{.rank = rank, .losses = {loss}};
  verification.coordinate.tensor = tensor;
  return verification;
}

Verification judged(std::vector<RankVerification> ranks) {
  Verification verification{
      .losses = {4.0}, .allowed_loss_differences = {4e-5}, .ranks = std::move(ranks)};
  judge(verification);
  return verification;
}

TEST(Judge, TakesTheMeanLossOfTheDataRanks) {
  EXPECT_TRUE(judged({rank_with_loss(0, 0, 3.0), rank_with_loss(1, 0, 5.0)}).equal);
  EXPECT_FALSE(judged({rank_with_loss(0, 0, 3.0), rank_with_loss(1, 0, 5.1)}).equal);
}

TEST(Judge, LooksAtEachTensorRank) {
  const Verification verification = judged({rank_with_loss(0, 0, 4.0), rank_with_loss(1, 1, 4.1)});
  EXPECT_FALSE(verification.equal);
  EXPECT_EQ(verification.ranks[0].differences.count, 0);
  ASSERT_EQ(verification.ranks[1].differences.count, 1);
  EXPECT_EQ(verification.ranks[1].differences.kept[0].where,
            "loss in iteration_0, mean of 1 data ranks");
}

TEST(Judge, ALossThatIsNoNumberIsDifferent) {
  EXPECT_FALSE(judged({rank_with_loss(0, 0, std::numeric_limits<double>::quiet_NaN())}).equal);
}

TEST(Judge, EqualMeansThatNoRankHasADifference) {
  RankVerification rank = rank_with_loss(0, 0, 4.0);
  rank.differences.add({.claim = Claim::kMemory});
  EXPECT_FALSE(judged({rank}).equal);
}

TEST(Tolerance, IsRelativeToTheTensorsNormAndNeverBelowTheFloor) {
  const Tolerance fp32 = tolerance_of(Dtype::kFp32, 0);
  EXPECT_DOUBLE_EQ(allowed_difference(fp32, {.norm = 2.0, .median_gradient = 1.0}), 2e-5);
  // A key's bias: nothing but rounding. 1e-5 x 1e-3 x the median.
  EXPECT_DOUBLE_EQ(allowed_difference(fp32, {.norm = 1e-9, .median_gradient = 5.0}), 5e-8);
}

TEST(Tolerance, Of16BitsIsFourTimesWhatTheTensorsRoundedInTheWholeModel) {
  // Half of the tensors are further than 1 % from the same in fp32, half of them nearer.
  const Tolerance bf16 = tolerance_of(Dtype::kBf16, 0.01);
  EXPECT_DOUBLE_EQ(allowed_difference(bf16, {.norm = 2.0, .rounding = 0.005}), 0.08);
  EXPECT_DOUBLE_EQ(allowed_difference(bf16, {.norm = 2.0, .rounding = 0.05}), 0.2);
  // Zero in exact arithmetic: the rounding is all that there is.
  EXPECT_DOUBLE_EQ(allowed_difference(bf16, {.norm = 1e-3, .rounding = 1e-3}), 4e-3);
}

TEST(Tolerance, OfALossIsNoLessThanItsOwnRounding) {
  EXPECT_DOUBLE_EQ(allowed_loss_difference(Dtype::kFp32, 4.0, 0), 4e-5);
  // 4 x half the distance of bf16's neighbours, 2^-7 of a number in [1, 2).
  EXPECT_DOUBLE_EQ(allowed_loss_difference(Dtype::kBf16, 4.0, 4.0), 4.0 * 4.0 / 256);
  EXPECT_DOUBLE_EQ(allowed_loss_difference(Dtype::kFp16, 4.0, 4.0), 4.0 * 4.0 / 2048);
  EXPECT_DOUBLE_EQ(allowed_loss_difference(Dtype::kBf16, 4.0, 4.1), 4 * (4.1 - 4.0));
}

TEST(Tolerance, TheMedianIsTheLowerOfTwoMiddleValues) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2);
}

}  // namespace
}  // namespace sim
