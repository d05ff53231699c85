#include "models/experts/stacked_experts.h"

#include <gtest/gtest.h>

#include "models/pipeline/stage.h"
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
  EXPECT_EQ(padded_places({3, 0, 9}, 3), expected);
}

// Two ranks send 3 and 1 rows for expert 0, and 0 and 9 for expert 1: those of expert 0 are rows 0
// to 2 and 3, those of expert 1 rows 4 to 12.
TEST(StackedExperts, BringTogetherTheRowsOfAnExpertFromAllRanks) {
  std::vector<int32_t> expected(32, -1);
  for (int32_t row = 0; row < 4; ++row) expected[row] = row;
  for (int32_t row = 4; row < 13; ++row) expected[8 + row - 4] = row;
  EXPECT_EQ(padded_places({3, 0, 1, 9}, 2), expected);
}

// The rows of two experts from two ranks, 1 each, lie in turn.
TEST(StackedExperts, SortTheRowsOfSeveralRanksByExpert) {
  const std::vector<int32_t> places = padded_places({1, 1, 1, 1}, 2);
  EXPECT_EQ(places[0], 0);
  EXPECT_EQ(places[1], 2);
  EXPECT_EQ(places[8], 1);
  EXPECT_EQ(places[9], 3);
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

// Eight experts over two expert ranks, whose four are divided between two data ranks; the router
// over all four data ranks.
TEST(TorchTitansExperts, AreAUnitOverTheRanksThatHaveTheSameOnes) {
  Json all = llama_changes();
  all.merge_patch(titan(Json::object()));
  all.merge_patch({{"model",
                    {{"num_experts", 8},
                     {"moe_ffn_hidden_size", 24},
                     {"position_embedding", "learned_absolute"}}},
                   {"parallelism", {{"data", 4}, {"expert", 2}}},
                   {"training", {{"global_batch_size", 8}}},
                   {"cluster", {{"gpus_per_node", 4}}}});
  const estimator::Plan plan = small_plan(all);
  SilentObserver observer;
  ShardContext context = meta_context(plan, 3, observer);
  Stage stage(context);
  std::map<std::string, const Parameter*> by_name;
  for (const Parameter& parameter : stage.parameters().all()) {
    by_name[parameter.name] = &parameter;
  }
  const Parameter& experts = *by_name.at("layers.1.mlp.experts.w1");
  const Parameter& router = *by_name.at("layers.1.mlp.router.weight");
  EXPECT_EQ(experts.value.sizes(), at::IntArrayRef({4, 24, 32}));
  EXPECT_EQ(experts.part.numel(), 2 * 24 * 32);
  EXPECT_EQ(router.part.numel(), 8 / 4 * 32);
  EXPECT_EQ(experts.unit, router.unit + 1);
  EXPECT_EQ(by_name.at("layers.1.pre_mlp_layernorm.weight")->unit, router.unit);
}

// A weight on the input of an expert is not one on its output, since the activation is no product.
TEST(TorchTitansExperts, TakeTheWeightsBeforeOrAfter) {
  Json before = titan(Json::object());
  before["model"] = {{"moe_apply_probs_on_input", true}};
  EXPECT_NE(iteration_of(before).loss, iteration_of(titan(Json::object())).loss);
}

}  // namespace
}  // namespace models
