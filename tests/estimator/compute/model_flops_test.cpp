#include "estimator/compute/model_flops.h"
#include "estimator/resolve/resolve_plan.h"

#include <gtest/gtest.h>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

// 2 samples of 8 tokens, so 16 tokens. Forward of a layer: attention matrices 2 x 16 x 4 x (4 + 2 +
// 2 + 4) = 1,536; causal core 2 matrices x 2 x 16 x 8 x 4 / 2 = 1,024; three MLP matrices 2 x 16 x
// 4 x 8 x 3 = 3,072. Head: 2 x 16 x 4 x 16 = 2,048. Three layers and the head: 3 x 5,632 + 2,048 =
// 18,944.
Plan tiny_gqa(const Json& changes) {
  Json tree = {{"model",
                {{"num_layers", 3},
                 {"hidden_size", 4},
                 {"num_attention_heads", 2},
                 {"num_query_groups", 1},
                 {"ffn_hidden_size", 8},
                 {"activation", "swiglu"},
                 {"vocab_size", 15},
                 {"max_position_embeddings", 8}}},
               {"cluster", {{"gpu", "h100-sxm"}, {"nodes", 1}, {"gpus_per_node", 1}}},
               {"training", {{"global_batch_size", 2}, {"make_vocab_size_divisible_by", 16}}}};
  tree.merge_patch(changes);
  return resolve_plan(tree, {});
}

Plan tiny_gqa(const char* recompute) {
  return tiny_gqa(Json{{"training", {{"recompute", recompute}}}});
}

TEST(StepFlops, CountsForwardOnceAndBackwardTwice) {
  EXPECT_DOUBLE_EQ(step_flops(tiny_gqa("none")).model, 3 * 18944);
  EXPECT_DOUBLE_EQ(step_flops(tiny_gqa("none")).hardware, 3 * 18944);
}

// Core attention has a whole backward, 3 x 3 x 1,024; all other products 18,944 - 3,072 run once
// more instead of twice. Adapters of rank 2 beside query and value, 4 + 4 and 4 + 2 wide, are
// trained: 3 x 2 x 16 x (3 layers x 2 x 14).
TEST(StepFlops, OfAdaptersHaveNoGradientsOfTheWeightsBesideThem) {
  const Plan plan =
      tiny_gqa({{"model", {{"position_embedding", "rope"}}}, {"training", {{"lora_rank", 2}}}});
  EXPECT_DOUBLE_EQ(step_flops(plan).model, 3 * 3072 + 2 * (18944 - 3072) + 3 * 2 * 16 * 3 * 2 * 14);
}

TEST(StepFlops, SelectiveRecomputeDoesTheCoreAttentionAgain) {
  EXPECT_DOUBLE_EQ(step_flops(tiny_gqa("selective")).model, 3 * 18944);
  EXPECT_DOUBLE_EQ(step_flops(tiny_gqa("selective")).hardware, 3 * 18944 + 3 * 1024);
}

// A fourth layer of 5,632; three norms and a projection of twice the width, 2 x 16 x (3 x 4 + 2 x 4
// x 4) = 1,408; and a second head of 2,048.
TEST(StepFlops, CountsLayersOfMultiTokenPredictionAndTheirHeads) {
  const auto predicting = [](const char* recompute) {
    return step_flops(tiny_gqa({{"model", {{"mtp_num_layers", 1}, {"position_embedding", "rope"}}},
                                {"training", {{"recompute", recompute}}}}));
  };
  constexpr double kOneForward = 18944 + 5632 + 1408 + 2048;
  EXPECT_DOUBLE_EQ(predicting("none").model, 3 * kOneForward);
  EXPECT_DOUBLE_EQ(predicting("full").hardware, 3 * kOneForward + 4 * 5632 + 1408);
  EXPECT_DOUBLE_EQ(predicting("selective").hardware, 3 * kOneForward + 4 * 1024);
}

// The MLP 3,072 in each dense layer; in one of three with experts two of width 4 for each token,
// 2 x 16 x 4 x 2 x 4 x 3 = 3,072, and shared ones of width 2, 2 x 16 x 4 x 2 x 3 = 768.
TEST(StepFlops, RecomputeDoesTheNamedModulesAgain) {
  const auto again = [](const Json& modules) {
    const Plan plan =
        tiny_gqa({{"model",
                   {{"num_experts", 8},
                    {"moe_ffn_hidden_size", 4},
                    {"moe_shared_expert_intermediate_size", 2},
                    {"add_bias_linear", false},
                    {"moe_layer_freq", {0, 1, 0}}}},
                  {"training", {{"recompute", "selective"}, {"recompute_modules", modules}}}});
    const StepFlops flops = step_flops(plan);
    return flops.hardware - flops.model;
  };
  EXPECT_DOUBLE_EQ(again(Json::array({"mlp"})), 2 * 3072);
  EXPECT_DOUBLE_EQ(again(Json::array({"moe"})), 3072 + 768);
  EXPECT_DOUBLE_EQ(again(Json::array({"shared_experts"})), 768);
  EXPECT_DOUBLE_EQ(again(Json::array({"core_attn", "mlp", "layernorm", "moe_act"})),
                   3 * 1024 + 2 * 3072);
}

// Forward and backward thrice of the other half of the core attention.
TEST(StepFlops, CountsAllOfTheAttentionAsPalmDoes) {
  EXPECT_DOUBLE_EQ(step_flops(tiny_gqa("none")).model_full_attention, 3 * 18944 + 3 * 3 * 1024);
}

TEST(StepFlops, FullRecomputeDoesTheLayersAgainButNotTheHead) {
  EXPECT_DOUBLE_EQ(step_flops(tiny_gqa("full")).hardware, 3 * 18944 + 3 * 5632);
}

// A layer of multi-token prediction is in no block.
TEST(StepFlops, BlockRecomputeDoesItsLayersOfEachChunkAgain) {
  const auto again = [](int64_t layers, const Json& more = Json::object()) {
    Json changes = {
        {"training",
         {{"recompute", "full"}, {"recompute_method", "block"}, {"recompute_num_layers", layers}}}};
    changes.merge_patch(more);
    const StepFlops flops = step_flops(tiny_gqa(changes));
    return flops.hardware - flops.model;
  };
  EXPECT_DOUBLE_EQ(again(1), 5632);
  EXPECT_DOUBLE_EQ(again(8), 3 * 5632);
  const Json chunks = {{"model", {{"num_layers", 4}}},
                       {"cluster", {{"gpus_per_node", 2}}},
                       {"parallelism", {{"pipeline", 2}}}};
  EXPECT_DOUBLE_EQ(again(1, chunks), 2 * 5632);
  const Json predicting = {{"model", {{"mtp_num_layers", 1}, {"position_embedding", "rope"}}}};
  EXPECT_DOUBLE_EQ(again(8, predicting), 3 * 5632);
}

Plan tiny_titan(const char* option, Attention attention, const Json& model = Json::object()) {
  Json changes = {
      {"training",
       {{"framework", "torchtitan"}, {"recompute", "selective"}, {"selective_ac_option", option}}},
      {"model", {{"add_bias_linear", false}}}};
  changes["model"].merge_patch(model);
  Plan plan = tiny_gqa(changes);
  plan.training.attention = attention;
  return plan;
}

// Of a layer's seven products, in order query, key, value, projection, gate, up, down, the second,
// fourth and sixth are run again: 2 x 16 x 4 x (2 + 4 + 8) = 1,792. A flash kernel's output is
// kept; the unfused products are on no list.
TEST(StepFlops, RecomputeByOperatorDoesEverySecondProductAgain) {
  EXPECT_DOUBLE_EQ(step_flops(tiny_titan("op", Attention::kFlash)).hardware, 3 * 18944 + 3 * 1792);
  EXPECT_DOUBLE_EQ(step_flops(tiny_titan("op", Attention::kUnfused)).hardware,
                   3 * 18944 + 3 * (1792 + 1024));
}

// A product with a bias is aten::addmm, which is on no list: 1,536 + 3,072. With those of query,
// key and value alone these are done again, 2 x 16 x 4 x (4 + 2 + 2) = 1,024, and of the other four
// gate and down, 2 x 16 x 4 x 8 = 1,024 each.
TEST(StepFlops, RecomputeByOperatorDoesProductsWithABiasAgain) {
  const auto again = [](const char* key) {
    const Plan plan = tiny_titan("op", Attention::kFlash, {{key, true}});
    return step_flops(plan).hardware - 3 * 18944;
  };
  EXPECT_DOUBLE_EQ(again("add_bias_linear"), 3 * (1536 + 3072));
  EXPECT_DOUBLE_EQ(again("add_qkv_bias"), 3 * (1024 + 2 * 1024));
}

// Two experts of width 4 multiply each token by three matrices, 2 x 16 x 4 x 2 x 4 x 3 = 3,072, of
// which nothing is kept; shared ones of width 2 are the fifth to seventh product, of which the
// sixth is run again, 2 x 16 x 4 x 2 = 256. Of the attention key and projection, 2 x 16 x 4 x (2 +
// 4) = 768.
TEST(StepFlops, RecomputeByOperatorDoesAllProductsOfExpertsAgain) {
  const auto again = [](int64_t shared) {
    Plan plan = tiny_titan("op", Attention::kFlash);
    plan.model.num_experts = 8;
    plan.model.moe_ffn_hidden_size = 4;
    plan.model.moe_shared_expert_intermediate_size = shared;
    plan.model.moe_layer_freq = {0, 1, 0};
    const StepFlops flops = step_flops(plan);
    return flops.hardware - flops.model;
  };
  EXPECT_DOUBLE_EQ(again(0), 2 * 1792 + 768 + 3072);
  EXPECT_DOUBLE_EQ(again(2), 2 * 1792 + 768 + 256 + 3072);
}

// Every second of three layers is one.
TEST(StepFlops, RecomputeByLayerDoesEveryNthLayerAgain) {
  EXPECT_DOUBLE_EQ(step_flops(tiny_titan("2", Attention::kFlash)).hardware, 3 * 18944 + 5632);
  EXPECT_DOUBLE_EQ(step_flops(tiny_titan("0", Attention::kFlash)).hardware, 3 * 18944 + 3 * 5632);
}

// The MLP of 16 tokens, 2 x 16 x 4 x 8 x 3 = 3,072 in each of three layers; experts in two of them:
// two of width 4 and shared ones of width 2 multiply each token, 2 x 16 x 4 x (2 x 4 + 2) x 3 =
// 3,840.
TEST(StepFlops, CountsTheExpertsThatATokenUses) {
  Plan plan = tiny_gqa("none");
  plan.model.num_experts = 8;
  plan.model.moe_ffn_hidden_size = 4;
  plan.model.moe_shared_expert_intermediate_size = 2;
  plan.model.moe_layer_freq = {0, 1, 1};
  EXPECT_DOUBLE_EQ(step_flops(plan).model, 3 * (18944 + 2 * (3840 - 3072)));
}

// Narayanan et al. 2021, appendix: 72 B s l h^2 (1 + s / 6h + V / 12 l h) without recompute; causal
// attention counts half of their s / 6h.
TEST(StepFlops, OfGpt3EqualsTheClosedForm) {
  const Plan plan = small_plan(
      {{"model", "gpt3-175b"},
       {"cluster", {{"gpu", "a100-sxm-80"}, {"nodes", 128}}},
       {"parallelism", {{"tensor", 8}, {"pipeline", 8}}},
       {"training",
        {{"global_batch_size", 1536}, {"sequence_length", 2048}, {"framework", "megatron-lm"}}}});
  const double tokens = 1536.0 * 2048, layers = 96, h = 12288, s = 2048, vocabulary = 51200;
  EXPECT_NEAR(step_flops(plan).model / (72 * tokens * layers * h * h *
                                        (1 + s / (12 * h) + vocabulary / (12 * layers * h))),
              1,
              1e-12);
}

// num_floating_point_operations in megatron/training/training.py, its branch for
// multi_latent_attention with DeepSeek-V3's sizes, of one layer and one sequence of 4,096 tokens:
// multiply-adds of a token, queries 1,536 (7,168 + 128 x 192 + 1), keys and values 512 (7,168 + 128
// x 256 + 1) + 7,168 x 64, output 128 x 128 x 7,168; scores 128 (192 + 128) x 4,096 / 2.
TEST(StepFlops, OfLatentAttentionAreMegatrons) {
  const auto flops = [](bool latent) {
    return step_flops(
        resolve_plan({{"model",
                       {{"num_layers", 1},
                        {"hidden_size", 7168},
                        {"num_attention_heads", 128},
                        {"kv_channels", 128},
                        {"ffn_hidden_size", 18432},
                        {"activation", "swiglu"},
                        {"vocab_size", 129280},
                        {"max_position_embeddings", 4096},
                        {"position_embedding", "rope"},
                        {"multi_latent_attention", latent},
                        {"q_lora_rank", latent ? 1536 : 0}}},
                      {"cluster", {{"gpu", "h100-sxm"}, {"nodes", 1}, {"gpus_per_node", 1}}},
                      {"training", {{"sequence_length", 4096}, {"recompute", "selective"}}}},
                     {}));
  };
  const double tokens = 4096;
  const double linear = 1536.0 * (7168 + 128 * 192 + 1) + 512.0 * (7168 + 128 * 256 + 1) +
                        7168.0 * 64 + 128.0 * 128 * 7168;
  const double scores = 128.0 * (192 + 128) * 4096 / 2;
  const double usual_linear = 4.0 * 7168 * 128 * 128, usual_scores = 128.0 * 256 * 4096 / 2;
  EXPECT_NEAR(flops(true).model - flops(false).model,
              6 * tokens * (linear + scores - usual_linear - usual_scores),
              1e6);
  EXPECT_NEAR(flops(true).hardware - flops(true).model, 2 * tokens * scores, 1e6);
}

// Up projections of a token: queries 6 x 2 x (2 + 2), keys and values 5 x 2 x (2 + 2).
TEST(StepFlops, RecomputeDoesUpProjectionsOfLatentsAgain) {
  const Plan plan = tiny_gqa(
      {{"model",
        {{"num_query_groups", 2},
         {"multi_latent_attention", true},
         {"q_lora_rank", 6},
         {"kv_lora_rank", 5},
         {"qk_head_dim", 2},
         {"qk_pos_emb_head_dim", 2},
         {"v_head_dim", 2}}},
       {"training",
        {{"recompute", "selective"}, {"recompute_modules", Json::array({"mla_up_proj"})}}}});
  const StepFlops flops = step_flops(plan);
  EXPECT_DOUBLE_EQ(flops.hardware - flops.model, 3 * 2 * 16 * (6 * 2 * 4 + 5 * 2 * 4));
}

}  // namespace
}  // namespace estimator
