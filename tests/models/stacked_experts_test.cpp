#include "models/experts/stacked_experts.h"

#include <gtest/gtest.h>

#include "tests/models/small_shards.h"

namespace models {
namespace {

using estimator::Json;

// Groups of 3, 0 and 9 rows take 8, 8 and 16 places; there is room for 12 + 3 x 8, rounded up
// to 40.
TEST(StackedExperts, PadEachGroupToAMultipleOfEightAndAnEmptyOneToEight) {
  std::vector<int32_t> expected(40, -1);
  for (int32_t row = 0; row < 3; ++row) expected[row] = row;
  for (int32_t row = 3; row < 12; ++row) expected[16 + row - 3] = row;
  EXPECT_EQ(padded_places({3, 0, 9}), expected);
}

/// Four experts, two for a token, in the first of two layers. Other positions than rotary ones, of
/// which TorchTitan turns other pairs.
Iteration iteration_of(const Json& changes) {
  Json all = llama_changes();
  all.merge_patch({{"model",
                    {{"num_experts", 4},
                     {"moe_layer_freq", {1, 0}},
                     {"moe_ffn_hidden_size", 24},
                     {"moe_shared_expert_intermediate_size", 16},
                     {"position_embedding", "learned_absolute"}}}});
  all.merge_patch(changes);
  return run_iteration(small_plan(all));
}

Json titan(const Json& training) {
  Json changes = {{"training", {{"framework", "torchtitan"}}},
                  {"parallelism", {{"zero_stage", 3}}},
                  {"cluster", {{"gpu", "h100-sxm"}}}};
  changes["training"].merge_patch(training);
  return changes;
}

void expect_near(const at::Tensor& actual, const at::Tensor& expected) {
  constexpr double kBf16Tolerance = 2e-2;  // the grouped products are in bf16
  EXPECT_LT(relative_difference(actual, expected), kBf16Tolerance);
  EXPECT_GT(expected.norm().item().toDouble(), 0);
}

TEST(TorchTitansExperts, HaveTheLossAndGradientsOfSeparateExperts) {
  const Iteration plain = iteration_of({{"training", {{"framework", "plain"}}}});
  const Iteration stacked = iteration_of(titan(Json::object()));
  EXPECT_NEAR(stacked.loss, plain.loss, 1e-3);
  const std::string mlp = "layers.0.mlp.";
  expect_near(stacked.gradients.at(mlp + "router.weight"),
              plain.gradients.at(mlp + "router.weight"));
  for (int64_t expert = 0; expert < 4; ++expert) {
    const std::string path = mlp + "experts." + std::to_string(expert);
    const auto halves = plain.gradients.at(path + ".linear_fc1.weight").chunk(2);
    expect_near(stacked.gradients.at(mlp + "experts.w1")[expert], halves[0]);
    expect_near(stacked.gradients.at(mlp + "experts.w3")[expert], halves[1]);
    expect_near(stacked.gradients.at(mlp + "experts.w2")[expert],
                plain.gradients.at(path + ".linear_fc2.weight"));
  }
}

TEST(TorchTitansExperts, AreRecomputedWithoutChangingGradients) {
  const Iteration kept = iteration_of(titan({{"recompute", "none"}}));
  for (const char* recompute : {"full", "selective"}) {
    const Iteration again = iteration_of(titan({{"recompute", recompute}}));
    for (const auto& [name, gradient] : kept.gradients) {
      EXPECT_EQ(relative_difference(again.gradients.at(name), gradient), 0) << name;
    }
  }
}

// A weight on the input of an expert is not one on its output, since the activation is no product.
TEST(TorchTitansExperts, TakeTheWeightsBeforeOrAfter) {
  Json before = titan(Json::object());
  before["model"] = {{"moe_apply_probs_on_input", true}};
  EXPECT_NE(iteration_of(before).loss, iteration_of(titan(Json::object())).loss);
}

}  // namespace
}  // namespace models
