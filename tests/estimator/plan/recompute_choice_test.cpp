#include "estimator/plan/recompute_choice.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

using enum Recomputed;

/// Of the first four layers of a rank.
std::vector<Recomputed> of_four_layers(const Json& training) {
  const Plan plan = small_plan({{"training", training}});
  std::vector<Recomputed> layers;
  for (int64_t layer = 0; layer < 4; ++layer) layers.push_back(recomputed(plan, layer));
  return layers;
}

std::vector<Recomputed> titan(const Json& option) {
  Json training = {{"framework", "torchtitan"}, {"recompute", "selective"}};
  training.merge_patch({{"selective_ac_option", option}});
  return of_four_layers(training);
}

TEST(RecomputeChoice, IsTheSameForAllLayersButTorchTitansByLayer) {
  EXPECT_EQ(of_four_layers({{"recompute", "none"}}), std::vector(4, kNothing));
  EXPECT_EQ(of_four_layers({{"recompute", "full"}}), std::vector(4, kLayer));
  EXPECT_EQ(of_four_layers({{"recompute", "selective"}}), std::vector(4, kCoreAttention));
  EXPECT_EQ(of_four_layers({{"recompute", "full"}, {"framework", "torchtitan"}}),
            std::vector(4, kLayer));
}

TEST(RecomputeChoice, OfTorchTitanIsByOperatorUnlessToldOtherwise) {
  EXPECT_EQ(titan(nullptr), std::vector(4, kUnlistedOperators));
  EXPECT_EQ(titan("op"), std::vector(4, kUnlistedOperators));
}

// It counts layers from 1: _layer_sac_count in activation_checkpoint.py.
TEST(RecomputeChoice, OfTorchTitanByLayerIsFullForEveryNth) {
  EXPECT_EQ(titan("2"), (std::vector{kNothing, kLayer, kNothing, kLayer}));
  EXPECT_EQ(titan("3"), (std::vector{kNothing, kNothing, kLayer, kNothing}));
  EXPECT_EQ(titan("5"), std::vector(4, kNothing));
  EXPECT_EQ(titan("1"), std::vector(4, kLayer));
  EXPECT_EQ(titan("0"), std::vector(4, kLayer));
}

}  // namespace
}  // namespace estimator
