#include "estimator/what_if/least_bytes.h"

#include <gtest/gtest.h>

#include "estimator/base/fields.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {
namespace {

/// Layers of 12 h^2 + 13 h parameters, where h is 64: 49,984.
Plan plan_with(const Json& changes) {
  Json tree = Json::parse(R"({
    "model": {"num_layers": 8, "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 1000,
              "max_position_embeddings": 128},
    "cluster": {"gpu": "h100-sxm", "nodes": 1, "gpus_per_node": 8},
    "training": {"sequence_length": 128}})");
  tree.merge_patch(changes);
  return resolve_plan(tree, {});
}

TEST(LeastBytes, AreWeightsGradientsAndTheOptimizersState) {
  // Two layers of a stage, halved: 2 + 4 bytes, and 4 + 4 + 4 of AdamW in fp32.
  const Json layout = {{"parallelism", {{"tensor", 2}, {"pipeline", 4}}}};
  EXPECT_EQ(least_bytes(plan_with(layout)), 49'984 * 18);
  Json reduced = layout;
  reduced["training"]["grad_reduce_in_bf16"] = true;
  EXPECT_EQ(least_bytes(plan_with(reduced)), 49'984 * 16);
}

TEST(LeastBytes, ShareWhatZeroDivides) {
  const Json two_data_ranks = {
      {"parallelism", {{"tensor", 2}, {"pipeline", 2}, {"zero_stage", 1}}}};
  // Four layers, halved: 6 bytes, and 12 bytes among two data ranks.
  EXPECT_EQ(least_bytes(plan_with(two_data_ranks)), 2 * 49'984 * (6 + 12 / 2));
  const Json sharded = {{"training", {{"framework", "plain"}}},
                        {"parallelism", {{"zero_stage", 3}}}};
  EXPECT_EQ(least_bytes(plan_with(sharded)), 8 * 49'984 / 8 * 16);
}

TEST(LeastBytes, AreTooManyOnlyWhereTheGpuHasLess) {
  const Json wide = {{"model", {{"hidden_size", 16384}}}};  // layers of 3.2 billion parameters
  Json split = wide;
  split["parallelism"] = {{"tensor", 8}};
  EXPECT_TRUE(state_alone_is_too_large(plan_with(wide)));
  EXPECT_FALSE(state_alone_is_too_large(plan_with(split)));
  Json mixed = wide;  // experts in every second layer
  mixed["model"].update({{"num_experts", 2},
                         {"moe_layer_freq", {0, 1, 0, 1, 0, 1, 0, 1}},
                         {"add_bias_linear", false}});
  EXPECT_FALSE(state_alone_is_too_large(plan_with(mixed)));
}

// A plan of Muon, or of an offloaded optimizer, may need less than one of AdamW on the GPU: Muon
// has one moment for matrices, and the host has the offloaded state.
TEST(LeastBytes, CountOnlyTheStateThatIsSurelyOnTheGpu) {
  EXPECT_EQ(least_bytes(plan_with({{"training", {{"optimizer", "sgd"}}}})), 8 * 49'984 * 14);
  EXPECT_EQ(least_bytes(plan_with({{"training", {{"optimizer", "muon"}}}})), 8 * 49'984 * 14);
  EXPECT_EQ(least_bytes(plan_with({{"training", {{"optimizer_cpu_offload", true}}},
                                   {"parallelism", {{"zero_stage", 1}}}})),
            8 * 49'984 * 6);
}

TEST(LeastBytes, ShareExpertsAmongTheirOwnRanks) {
  // A layer has 16,384 parameters in attention, 256 in norms and 512 in its router, and experts of
  // 32,768 parameters, of which a rank has two.
  const Plan plan = plan_with({{"model",
                                {{"num_experts", 8},
                                 {"moe_ffn_hidden_size", 256},
                                 {"moe_router_topk", 2},
                                 {"add_bias_linear", false}}},
                               {"parallelism",
                                {{"tensor", 2},
                                 {"sequence_parallel", true},
                                 {"expert", 4},
                                 {"expert_tensor", 1},
                                 {"zero_stage", 1}}}});
  const int64_t beside = 8 * (16'384 + 256 + 512) / 2;
  const int64_t experts = 8 * 2 * 32'768;
  EXPECT_EQ(least_bytes(plan), beside * 6 + beside / 4 * 12 + experts * 6 + experts / 2 * 12);
}

}  // namespace
}  // namespace estimator
