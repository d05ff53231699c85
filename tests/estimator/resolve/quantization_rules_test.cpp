#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "estimator/resolve/subject_rules.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

/// One mistake, and words of the message that it must get.
struct BadProducts {
  Json changes;
  std::vector<std::string> words;
};

const Json kExperts = {{"training", {{"moe_grouped_gemm", true}}},
                       {"model",
                        {{"num_experts", 4},
                         {"moe_router_topk", 2},
                         {"moe_ffn_hidden_size", 256},
                         {"add_bias_linear", false}}}};

Json with_experts(const Json& changes) {
  Json tree = kExperts;
  tree.merge_patch(changes);
  return tree;
}

/// Multi-latent attention with heads of usual widths.
Json with_latents(const char* key, int64_t width) {
  Json model = {{"multi_latent_attention", true},
                {"position_embedding", "rope"},
                {"add_bias_linear", false},
                {"q_lora_rank", 64},
                {"kv_lora_rank", 64},
                {"qk_head_dim", 32},
                {"qk_pos_emb_head_dim", 32},
                {"v_head_dim", 32}};
  model[key] = width;
  return {{"model", model}};
}

Json in_four_bits(const Json& changes = Json::object()) {
  Json tree = {{"training", {{"fp4_format", "e2m1"}}}, {"cluster", {{"gpu", "b200"}}}};
  tree.merge_patch(changes);
  return tree;
}

Json in_eight_bits(const Json& changes = Json::object()) {
  Json tree = {{"training", {{"fp8_format", "hybrid"}}}, {"cluster", {{"gpu", "h100"}}}};
  tree.merge_patch(changes);
  return tree;
}

void expect_complaint(const Json& tree, const std::vector<std::string>& expected) {
  SCOPED_TRACE(tree);
  const std::string text = complaint_about(tree);
  EXPECT_NE(text.find("help: "), std::string::npos) << text;
  for (const std::string& words : expected) {
    EXPECT_NE(text.find(words), std::string::npos) << words << " is not in\n" << text;
  }
}

TEST(QuantizationRules, SayWhatIsWrongAndTheWayOut) {
  const std::vector<BadProducts> plans = {
      {{{"training", {{"framework", "plain"}}}},
       {"only TransformerEngine's layers",
        "training.framework = plain",
        "--framework megatron-lm"}},
      {{{"training", {{"transformer_impl", "local"}}}}, {"transformer_impl = local"}},
      {{{"cluster", {{"gpu", "a100"}}}}, {"no 8-bit products", "a100", "from Hopper on"}},
      {{{"training", {{"sequence_length", 1022}}}}, {"multiple of 8 tokens", "1022 tokens"}},
      {{{"model", {{"ffn_hidden_size", 4088}}}}, {"multiples of 16", "model.ffn_hidden_size"}},
      {{{"model", {{"mtp_num_layers", 1}, {"position_embedding", "rope"}}},
        {"parallelism", {{"tensor", 8}}}},
       {"model.hidden_size gives a rank matrices of 8 columns"}},
      {{{"training", {{"fp8_param_gather", true}}}, {"parallelism", {{"zero_stage", 0}}}},
       {"need the distributed optimizer", "zero_stage = 0", "--use-distributed-optimizer"}},
      {{{"training", {{"fp8_param_gather", true}, {"fp8_format", "none"}}}},
       {"fp8_param_gather keeps the weights", "--fp8-format hybrid"}},
      {{{"training", {{"fp8_recipe", "mxfp8"}, {"fp8_format", "none"}}}},
       {"only for products in 8 bits", "fp8_recipe = mxfp8", "--fp8-format hybrid"}},
      {with_latents("q_lora_rank", 200),
       {"multiples of 16", "model.q_lora_rank gives a rank matrices of 200 columns"}},
      {with_latents("kv_lora_rank", 72),
       {"multiples of 16", "model.kv_lora_rank gives a rank matrices of 72 columns"}},
      {{{"training", {{"fp8_recipe", "mxfp8"}}}},
       {"no 8-bit products with a scale for each 32 elements", "h100", "B200"}},
      {{{"training", {{"fp8_recipe", "mxfp8"}, {"sequence_length", 1000}}},
        {"cluster", {{"gpu", "b200"}}}},
       {"multiple of 32 tokens", "1000 tokens"}},
      {{{"training", {{"fp8_recipe", "blockwise"}}}, {"cluster", {{"gpu", "b200"}}}},
       {"no 8-bit products with a scale for each 128 elements", "b200", "on Hopper blockwise"}},
      {{{"training", {{"fp8_recipe", "blockwise"}, {"fp8_param_gather", true}}},
        {"parallelism", {{"zero_stage", 1}}}},
       {"not supported with scales of blocks of 128", "fp8_recipe = blockwise"}},
      {{{"training", {{"fp8_recipe", "blockwise"}, {"sequence_length", 192}}},
        {"parallelism", {{"tensor", 2}, {"sequence_parallel", true}}}},
       {"multiple of 128 tokens", "a rank has 96 tokens"}},
      {with_experts({{"model", {{"moe_ffn_hidden_size", 264}}}}),
       {"multiples of 16", "model.moe_ffn_hidden_size"}},
      {with_experts({{"training",
                      {{"fp8_recipe", "delayed"},
                       {"recompute", "selective"},
                       {"recompute_modules", {"moe_act"}}}}}),
       {"cannot quantize again", "moe_act", "--fp8-recipe tensorwise"}},
      {{{"training",
         {{"fp8_recipe", "delayed"},
          {"recompute", "selective"},
          {"recompute_modules", {"layernorm"}}}}},
       {"cannot quantize again", "do not recompute layernorm"}},
  };
  for (const BadProducts& plan : plans) expect_complaint(in_eight_bits(plan.changes), plan.words);
}

TEST(QuantizationRules, SayWhatAttentionAndTheOutputLayerInEightBitsNeed) {
  const Json mxfp8 = {
      {"cluster", {{"gpu", "b200"}}},
      {"model",
       {{"hidden_size", 256},
        {"num_attention_heads", 8},
        {"tie_embeddings", false},
        {"attention_dropout", 0}}},
      {"training",
       {{"fp8_recipe", "mxfp8"}, {"fp8_dot_product_attention", true}, {"fp8_output_proj", true}}}};
  const std::vector<BadProducts> plans = {
      {{{"training", {{"fp8_recipe", "tensorwise"}}}},
       {"attention in 8 bits is supported with MXFP8 alone", "the output layer multiplies"}},
      {{{"training", {{"attention", "flash"}}}}, {"is cuDNN's", "--attention-backend fused"}},
      {{{"model", {{"attention_dropout", 0.1}}}}, {"dropout yet"}},
      {{{"parallelism", {{"context", 2}}}}, {"context ranks", "parallelism.context = 2"}},
      {{{"model", {{"num_attention_heads", 16}}}}, {"multiples of 32", "heads of 16 and 16"}},
      {{{"model", {{"tie_embeddings", true}}}}, {"a weight of its own"}}};
  for (const BadProducts& plan : plans) {
    Json tree = mxfp8;
    tree.merge_patch(plan.changes);
    expect_complaint(in_eight_bits(tree), plan.words);
  }
  EXPECT_EQ(complaint_about(in_eight_bits(mxfp8)), "");
}

TEST(QuantizationRules, SayWhatProductsInFourBitsNeed) {
  const std::vector<BadProducts> plans = {
      {{{"training", {{"transformer_impl", "local"}}}}, {"multiply in 4 bits", "e2m1"}},
      {{{"cluster", {{"gpu", "h100"}}}}, {"no 4-bit products", "h100", "GB200"}},
      {{{"training", {{"fp8_format", "e4m3"}}}}, {"in 8 bits or in 4", "--fp4-format"}},
      {{{"training", {{"sequence_length", 1000}}}}, {"multiple of 16 tokens", "1000 tokens"}},
      {{{"model", {{"mtp_num_layers", 1}, {"position_embedding", "rope"}}}},
       {"stay in 16 bits", "--mtp-num-layers 0"}},
      {{{"training", {{"dtype", "fp16"}}}}, {"is for bf16", "training.dtype = fp16"}},
      {{{"training", {{"fp4_param_gather", true}}}, {"parallelism", {{"zero_stage", 0}}}},
       {"parameters in 4 bits need", "--use-distributed-optimizer"}},
      {{{"training", {{"fp4_param_gather", true}, {"fp4_format", "none"}}}},
       {"fp4_param_gather keeps the weights", "--fp4-format"}},
  };
  for (const BadProducts& plan : plans) expect_complaint(in_four_bits(plan.changes), plan.words);
}

TEST(QuantizationRules, LetGoodPlansPass) {
  EXPECT_EQ(complaint_about(in_four_bits()), "");
  EXPECT_EQ(complaint_about(in_four_bits({{"training", {{"fp4_param_gather", true}}},
                                          {"parallelism", {{"zero_stage", 1}}}})),
            "");
  EXPECT_EQ(complaint_about(in_eight_bits()), "");
  EXPECT_EQ(complaint_about(in_eight_bits({{"training", {{"fp8_recipe", "tensorwise"}}}})), "");
  EXPECT_EQ(complaint_about(in_eight_bits({{"cluster", {{"gpu", "b200"}}}})), "");
  EXPECT_EQ(complaint_about(in_eight_bits(kExperts)), "");
  EXPECT_EQ(complaint_about(in_eight_bits({{"training", {{"fp8_recipe", "blockwise"}}}})), "");
  Json latents = with_latents("q_lora_rank", 64);
  latents["training"] = {{"fp8_recipe", "tensorwise"},
                         {"recompute", "selective"},
                         {"recompute_modules", {"layernorm", "mla_up_proj"}}};
  EXPECT_EQ(complaint_about(in_eight_bits(latents)), "");
  EXPECT_EQ(complaint_about(in_eight_bits(
                {{"training", {{"fp8_recipe", "mxfp8"}}}, {"cluster", {{"gpu", "b200"}}}})),
            "");
}

}  // namespace
}  // namespace estimator
