#include "estimator/plan/fused_experts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

/// Eight experts on four expert ranks in MXFP8, in fused kernels; `changes` is merged in.
Json fused_tree(const Json& changes = Json::object()) {
  Json tree = {{"model",
                {{"num_experts", 8},
                 {"moe_router_topk", 2},
                 {"max_position_embeddings", 4096},
                 {"moe_ffn_hidden_size", 128},
                 {"activation", "swiglu"},
                 {"add_bias_linear", false}}},
               {"cluster", {{"gpu", "gb200"}}},
               {"parallelism", {{"expert", 4}, {"zero_stage", 1}}},
               {"training",
                {{"sequence_length", 1024},
                 {"fp8_format", "e4m3"},
                 {"fp8_recipe", "mxfp8"},
                 {"fp8_param_gather", true},
                 {"moe_token_dispatcher_type", "flex"},
                 {"moe_flex_dispatcher_backend", "hybridep"},
                 {"use_transformer_engine_op_fuser", true},
                 {"moe_mlp_glu_interleave_size", 32},
                 {"moe_expert_rank_capacity_factor", 1.5}}}};
  tree.merge_patch(changes);
  return tree;
}

Json with(const char* section, const char* key, const Json& value) {
  return {{section, {{key, value}}}};
}

// setup_metadata() of _HybridEPManager rounds up to 256, and _fused_forward() divides again.
TEST(FusedExperts, HaveMemoryForMoreRowsThanComeInTheMean) {
  const auto plan =
      small_plan(fused_tree(with("training", "moe_expert_rank_capacity_factor", 1.3)));
  EXPECT_EQ(expert_row_budget(plan), 2816);  // 2,662 rounded up
  EXPECT_EQ(mean_expert_rows(plan), 2166);   // 2816 / 1.3
  EXPECT_EQ(expert_row_multiple(plan.training), 256);
  const auto usual = small_plan({{"training", {{"fp8_format", "e4m3"}, {"fp8_recipe", "mxfp8"}}},
                                 {"cluster", {{"gpu", "b200"}}}});
  EXPECT_EQ(expert_row_multiple(usual.training), 32);
  EXPECT_FALSE(expert_row_budget(usual));
}

TEST(FusedExperts, SayWhatTheyNeed) {
  struct BadPlan {
    Json changes;
    std::vector<std::string> words;
  };
  const std::vector<BadPlan> plans = {
      {with("training", "moe_mlp_glu_interleave_size", 0), {"32 columns", "interleave-size 32"}},
      {with("training", "fp8_recipe", "tensorwise"), {"in MXFP8 alone", "fp8_recipe = tensorwise"}},
      {with("training", "fp8_param_gather", false),
       {"with weights in 8 bits", "--fp8-param-gather"}},
      {with("training", "moe_expert_rank_capacity_factor", nullptr),
       {"a capacity of a rank's experts", "no moe_expert_rank_capacity_factor"}},
      {with("training", "moe_flex_dispatcher_backend", "deepep"), {"with HybridEP"}},
      {with("training", "moe_expert_rank_capacity_factor", 0.5), {"would be dropped"}},
      {with("training", "moe_expert_rank_capacity_factor", 1.0) /* as many as there are */, {}},
      {with("model", "num_experts", 64), {"do not fit its capacity", "16 experts"}},
      {with("model", "activation", "gelu"), {"with SwiGLU and without biases"}},
      {with("model", "moe_ffn_hidden_size", 96), {"multiples of 64"}},
      {with("training", "moe_grouped_gemm", false), {"experts that run together"}},
      {{{"training", {{"recompute", "selective"}, {"recompute_modules", {"moe"}}}}},
       {"recompute of experts"}},
      {{{"training",
         {{"use_transformer_engine_op_fuser", false},
          {"moe_expert_rank_capacity_factor", nullptr},
          {"moe_mlp_glu_interleave_size", 0},
          {"moe_paged_stash", true}}}},
       {"only for plans with moe_expert_rank_capacity_factor"}},
      {with("training", "moe_paged_stash_page_size", 32), {"only for plans with moe_paged_stash"}},
      {with("training", "use_transformer_engine_op_fuser", false),
       {"training.moe_mlp_glu_interleave_size without use_transformer_engine_op_fuser"}}};
  for (const BadPlan& plan : plans) {
    SCOPED_TRACE(plan.changes);
    const std::string text = complaint_about(fused_tree(plan.changes));
    EXPECT_EQ(text.empty(), plan.words.empty()) << text;
    for (const std::string& words : plan.words) {
      EXPECT_NE(text.find(words), std::string::npos) << words << " is not in\n" << text;
    }
  }
  EXPECT_EQ(complaint_about(fused_tree()), "");
  EXPECT_EQ(complaint_about(fused_tree(with("training", "cuda_graph_impl", "full_iteration"))), "");
}

}  // namespace
}  // namespace estimator
