#include "estimator/resolve/subject_rules.h"

#include <gtest/gtest.h>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

Json latent(const Json& changes = Json::object()) {
  Json tree = Json::parse(R"({"model": {"multi_latent_attention": true, "kv_lora_rank": 16,
    "position_embedding": "rope"}})");
  tree.merge_patch(changes);
  return tree;
}

/// One mistake in a plan with multi-latent attention, and words of the message that it must get.
struct BadLatentPlan {
  const char* changes;
  std::vector<std::string> words;
};

TEST(LatentAttentionRules, SayWhatIsWrongAndTheWayOut) {
  const std::vector<BadLatentPlan> plans = {
      {R"({"model": {"num_query_groups": 1}})",
       {"for each query head", "model.num_query_groups = 1"}},
      {R"({"model": {"add_qkv_bias": true}})", {"no bias on query", "model.add_qkv_bias"}},
      {R"({"model": {"qk_pos_emb_head_dim": 3}})",
       {"even head width", "model.qk_pos_emb_head_dim = 3"}},
      {R"({"training": {"framework": "nanotron"}})",
       {"not supported for this framework", "nanotron", "megatron-lm or plain"}},
      {R"({"training": {"transformer_impl": "local"}})",
       {"TransformerEngine's layers", "transformer_impl = local"}},
      {R"({"parallelism": {"context": 2}})",
       {"with context parallelism", "parallelism.context = 2"}},
      {R"({"parallelism": {"tensor": 2}})",
       {"shared key is not summed", "parallelism.tensor = 2", "--sequence-parallel"}},
      {R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "tp_comm_overlap": true}})",
       {"no user buffers", "parallelism.tp_comm_overlap"}},
      {R"({"training": {"attention": "flash"}})",
       {"widths", "attention = flash, 192 and 128 wide", "fused or unfused"}},
      {R"({"model": {"v_head_dim": 256}, "training": {"framework": "plain", "attention": "flash"}})",
       {"not wider", "attention = flash, 192 and 256 wide", "unfused"}},
      {R"({"model": {"v_head_dim": 0}})", {"out of range", "model.v_head_dim = 0"}},
      {R"({"model": {"q_lora_rank": -1}})", {"out of range", "model.q_lora_rank = -1"}},
  };
  for (const BadLatentPlan& plan : plans) {
    SCOPED_TRACE(plan.changes);
    const std::string text = complaint_about(latent(Json::parse(plan.changes)));
    EXPECT_NE(text.find("help: "), std::string::npos) << text;
    for (const std::string& words : plan.words) {
      EXPECT_NE(text.find(words), std::string::npos) << words << " is not in\n" << text;
    }
  }
}

TEST(LatentAttentionRules, LetAGoodPlanPass) {
  EXPECT_EQ(complaint_about(latent()), "");
  EXPECT_EQ(complaint_about(latent({{"training", {{"framework", "plain"}}}})), "");
  EXPECT_EQ(
      complaint_about(latent({{"parallelism", {{"tensor", 2}, {"sequence_parallel", true}}}})), "");
  // Keys and values of one width run under any kernel.
  EXPECT_EQ(complaint_about(
                latent({{"model", {{"qk_head_dim", 64}}}, {"training", {{"attention", "flash"}}}})),
            "");
}

TEST(LatentAttentionRules, RefuseItsKeysWithoutIt) {
  for (const Json& key : {Json{{"q_lora_rank", 8}},
                          Json{{"kv_lora_rank", 8}},
                          Json{{"qk_head_dim", 8}},
                          Json{{"qk_pos_emb_head_dim", 8}},
                          Json{{"v_head_dim", 8}}}) {
    const std::string text = complaint_about({{"model", key}});
    EXPECT_NE(text.find("belongs to multi-latent attention"), std::string::npos) << key << text;
  }
}

// TransformerEngine 2.9, get_attention_backend: no flash-attn 2 for heads of two widths.
TEST(LatentAttentionRules, AreKeptByTheUsualKernel) {
  const auto chosen = [](const char* gpu, const char* framework) {
    const Json changes =
        latent({{"cluster", {{"gpu", gpu}}}, {"training", {{"framework", framework}}}});
    return small_plan(changes).training.attention;
  };
  EXPECT_EQ(chosen("h100", "megatron-lm"), Attention::kFused);
  EXPECT_EQ(chosen("a100", "megatron-lm"), Attention::kUnfused);
  EXPECT_EQ(chosen("h100", "plain"), Attention::kFlash);
}

}  // namespace
}  // namespace estimator
