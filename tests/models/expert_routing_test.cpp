#include "models/experts/expert_routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/models/small_shards.h"

namespace models {
namespace {

using estimator::Json;
using estimator::Plan;

/// 16 rows of a sequence, of which each goes to 3 of 8 experts.
Plan plan_of(const Json& changes) {
  Json all = llama_changes();
  all.merge_patch({{"model", {{"num_experts", 8}, {"moe_router_topk", 3}}},
                   {"training", {{"micro_batch_size", 1}}}});
  all.merge_patch(changes);
  return small_plan(all);
}

int64_t sum(const std::vector<int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
}

TEST(ExpertRouting, GivesEachTokenDifferentExpertsAndEachExpertAsManyTokens) {
  const ExpertRouting routing = route_in_turn(plan_of(Json::object()), {});
  ASSERT_EQ(routing.tokens, 16);
  for (int64_t token = 0; token < routing.tokens; ++token) {
    const auto first = routing.chosen.begin() + 3 * token;
    EXPECT_EQ(std::set<int64_t>(first, first + 3).size(), 3u);
  }
  EXPECT_EQ(routing.of_expert, std::vector<int64_t>(8, 16 * 3 / 8));
}

TEST(ExpertRouting, ListsTheTokensOfEachExpertInTurn) {
  const ExpertRouting routing = route_in_turn(plan_of(Json::object()), {});
  auto token = routing.permuted.begin();
  for (int64_t expert = 0; expert < 8; ++expert) {
    for (int64_t i = 0; i < routing.of_expert[expert]; ++i, ++token) {
      const auto first = routing.chosen.begin() + 3 * *token;
      EXPECT_NE(std::find(first, first + 3, expert), first + 3) << *token << " of " << expert;
    }
  }
  EXPECT_EQ(token, routing.permuted.end());
}

// Three tokens at 3 experts each: 9 of 8 experts.
TEST(ExpertRouting, DropsNothingWhereExpertsDoNotDivide) {
  const ExpertRouting routing =
      route_in_turn(plan_of({{"training", {{"sequence_length", 3}}}}), {});
  EXPECT_EQ(routing.of_expert, (std::vector<int64_t>{2, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(ExpertRouting, OfOthersIsKnownByTheirPlaceAlone) {
  const Json capacity = {
      {"training",
       {{"moe_expert_capacity_factor", 1.2}, {"moe_pad_expert_input_to_capacity", true}}}};
  const Json uneven = {{"training", {{"sequence_length", 3}, {"micro_batch_size", 2}}}};
  for (const Json& changes : {Json(Json::object()), capacity, uneven}) {
    const Plan plan = plan_of(changes);
    EXPECT_EQ(tokens_of_experts(plan, {}), route_in_turn(plan, {}).of_expert) << changes;
  }
}

// Of 16 rows two tensor ranks have 8 each: what they send together is what one rank would.
TEST(ExpertRouting, OfTensorRanksIsThatOfTheWholeSequence) {
  const Plan cut = plan_of({{"cluster", {{"gpus_per_node", 2}}},
                            {"parallelism", {{"tensor", 2}, {"sequence_parallel", true}}}});
  const ExpertRouting whole = route_in_turn(plan_of(Json::object()), {});
  std::vector<int64_t> chosen;
  for (int64_t tensor = 0; tensor < 2; ++tensor) {
    const ExpertRouting part = route_in_turn(cut, {.tensor = tensor});
    EXPECT_EQ(part.tokens, 8);
    chosen.insert(chosen.end(), part.chosen.begin(), part.chosen.end());
  }
  EXPECT_EQ(chosen, whole.chosen);
}

// 16 x 3 / 8 = 6 in the mean; 1.2 times that, rounded up, is 8.
TEST(ExpertRouting, FillsExpertsUpWithTokensOfOthers) {
  const ExpertRouting routing = route_in_turn(
      plan_of(
          {{"training",
            {{"moe_expert_capacity_factor", 1.2}, {"moe_pad_expert_input_to_capacity", true}}}}),
      {});
  EXPECT_EQ(routing.of_expert, std::vector<int64_t>(8, 8));
  EXPECT_EQ(sum(routing.of_expert), static_cast<int64_t>(routing.permuted.size()));
  for (auto first = routing.permuted.begin(); first != routing.permuted.end(); first += 8) {
    EXPECT_EQ(std::set<int64_t>(first, first + 8).size(), 8u);  // no token twice
  }
}

}  // namespace
}  // namespace models
