#include "estimator/plan/optimizer_moments.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

TEST(OptimizerMoments, AreThoseOfMatricesAndOfOtherParameters) {
  EXPECT_EQ(moments_of(Optimizer::kAdamw, true), 2);
  EXPECT_EQ(moments_of(Optimizer::kAdamw, false), 2);
  EXPECT_EQ(moments_of(Optimizer::kSgd, true), 1);
  EXPECT_EQ(moments_of(Optimizer::kMuon, true), 1);
  EXPECT_EQ(moments_of(Optimizer::kMuon, false), 2);
}

TEST(OptimizerMoments, AreOfAnyParameterAtLeast) {
  EXPECT_EQ(least_moments_of(Optimizer::kAdamw), 2);
  EXPECT_EQ(least_moments_of(Optimizer::kSgd), 1);
  EXPECT_EQ(least_moments_of(Optimizer::kMuon), 1);
}

}  // namespace
}  // namespace estimator
