// The calls in which ranks agree on scales that follow from earlier micro-batches
// (FP8GlobalStateManager in transformer_engine/pytorch/quantization.py), on a GPT of two layers.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/sim/rank/executed_rank.h"

namespace sim {
namespace {

using estimator::Direction;
using estimator::GroupKind;
using estimator::Json;

/// Of the query, key and value, of attention's output, of the two layers of the MLP, and three of
/// attention itself.
constexpr int64_t kProductsOfLayer = 2 + 3 + 2;
constexpr int64_t kForwardBytes = 3 * 4 * kProductsOfLayer,
                  kBackwardBytes = 2 * 4 * kProductsOfLayer;

/// How often in a micro-batch, by direction and bytes.
using Calls = std::map<std::pair<Direction, int64_t>, int64_t>;

/// Of two tensor, two context and two data ranks.
estimator::RankProfile delayed(const Json& changes) {
  Json plan = {
      {"cluster", {{"gpu", "h100"}, {"gpus_per_node", 8}}},
      {"parallelism", {{"tensor", 2}, {"context", 2}, {"sequence_parallel", true}}},
      {"training", {{"fp8_format", "hybrid"}, {"fp8_recipe", "delayed"}, {"attention", "fused"}}}};
  plan.merge_patch(changes);
  return execute(gpt_plan(plan));
}

Calls agreements(const Json& changes, GroupKind group = GroupKind::kStage) {
  const estimator::RankProfile profile = delayed(changes);
  Calls calls;
  for (const auto& record : profile.collectives) {
    const bool agrees = record.call.kind == estimator::CollectiveKind::kAllReduce &&
                        record.call.group == group && record.call.dtype == "Float" &&
                        estimator::is_per_micro_batch(record.direction);
    if (!agrees) continue;
    calls[{record.direction, record.call.bytes}] +=
        record.executed_count / profile.micro_batches.executed;
  }
  return calls;
}

TEST(DelayedScales, AreAgreedOnByAllRanksOfAStageAfterEachForwardAndBackward) {
  const Calls expected = {{{Direction::kForward, 2 * kForwardBytes}, 1},
                          {{Direction::kBackward, 2 * kBackwardBytes}, 1}};
  EXPECT_EQ(agreements(Json::object()), expected);
  for (const auto& record : delayed(Json::object()).collectives) {
    const bool is_stage = record.call.group == GroupKind::kStage;
    EXPECT_EQ(is_stage ? record.call.group_size : 8, 2 * 2 * 2);
  }
}

// Megatron-LM's --tp-only-amax-red.
TEST(DelayedScales, AreAgreedOnByTensorAndContextRanksWhereThePlanSaysSo) {
  const Json changes = {{"training", {{"tp_only_amax_red", true}}}};
  EXPECT_EQ(agreements(changes), Calls());
  EXPECT_EQ(agreements(changes, GroupKind::kTensorContext), agreements(Json::object()));
}

// Each checkpoint ends an autocast of its own, and each linear layer in it takes itself for the
// first one (_check_fp8_reduce_and_update in transformer_engine/pytorch/module/linear.py). What
// checkpoints leave behind lets the last norm do so in the next micro-batch
// (activation_recompute_forward in transformer_engine/pytorch/distributed.py).
TEST(DelayedScales, AreAgreedOnAgainForEachCheckpoint) {
  const Calls expected = {{{Direction::kForward, 2 * kForwardBytes}, 1},
                          {{Direction::kRecompute, 2 * kForwardBytes}, 2},
                          {{Direction::kBackward, 2 * kBackwardBytes}, 2 * 4 + 1}};
  EXPECT_EQ(agreements({{"training", {{"recompute", "full"}}}}), expected);
}

// The norm of queries comes after the first linear layer, and keeps the place of the first module
// for itself.
TEST(DelayedScales, AreAgreedOnAfterTheFirstNormOfACheckpoint) {
  const Json changes = {{"training", {{"recompute", "full"}}}, {"model", {{"qk_layernorm", true}}}};
  EXPECT_EQ((agreements(changes).at({Direction::kBackward, 2 * kBackwardBytes})), 2 * 2 + 1);
}

// The two linear layers of the MLP; the first layer's query, key and value came first in the
// forward.
TEST(DelayedScales, AreAgreedOnAgainForAnMlpThatIsRecomputed) {
  const Calls expected = {{{Direction::kForward, 2 * kForwardBytes}, 1},
                          {{Direction::kRecompute, 2 * kForwardBytes}, 2},
                          {{Direction::kBackward, 2 * kBackwardBytes}, 1 + 2 * 2}};
  EXPECT_EQ(agreements({{"training",
                         {{"recompute", "selective"}, {"recompute_modules", Json::array({"mlp"})}}},
                        {"model", {{"add_bias_linear", false}}}}),
            expected);
}

// Attention is Megatron-LM's own checkpoint, outside of any autocast.
TEST(DelayedScales, AreNotAgreedOnAgainForAttentionThatIsRecomputed) {
  EXPECT_EQ(agreements({{"training", {{"recompute", "selective"}}}}), agreements(Json::object()));
}

// A grouped layer has as many products as experts. In a checkpoint the norm before the router takes
// the place of the first module for itself: after query, key and value, and attention's output.
TEST(DelayedScales, OfExpertsHaveAsManyProductsAsExperts) {
  const Json experts = {{"model",
                         {{"num_experts", 8},
                          {"moe_router_topk", 2},
                          {"moe_ffn_hidden_size", 512},
                          {"add_bias_linear", false}}},
                        {"parallelism", {{"context", 1}, {"expert", 2}}},
                        {"cluster", {{"gpus_per_node", 8}}}};
  constexpr int64_t kProducts = 2 * (2 + 3 + 2 * 4);
  const Calls expected = {{{Direction::kForward, 3 * 4 * kProducts}, 1},
                          {{Direction::kBackward, 2 * 4 * kProducts}, 1}};
  EXPECT_EQ(agreements(experts), expected);
  Json again = experts;
  again["training"]["recompute"] = "full";
  const Calls of_checkpoints = {{{Direction::kForward, 3 * 4 * kProducts}, 1},
                                {{Direction::kRecompute, 3 * 4 * kProducts}, 2},
                                {{Direction::kBackward, 2 * 4 * kProducts}, 2 * 3 + 1}};
  EXPECT_EQ(agreements(again), of_checkpoints);
}

// TransformerEngine finds scales of the recipe tensorwise in the tensors themselves.
TEST(DelayedScales, AreNoneOfOtherRecipes) {
  EXPECT_EQ(agreements({{"training", {{"fp8_recipe", "tensorwise"}}}}), Calls());
}

// Scales and largest elements, of forward and backward, of five modules in each of two layers.
TEST(DelayedScales, LastInABlockForEachModuleAndPass) {
  const auto held = [](const char* recipe) {
    const Json changes = {{"training", {{"fp8_recipe", recipe}}}};
    return delayed(changes).phases.back().after.allocated_bytes;
  };
  EXPECT_EQ(held("delayed") - held("tensorwise"), 2 * 5 * 4 * 512);
}

}  // namespace
}  // namespace sim
