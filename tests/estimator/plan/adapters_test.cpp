#include "estimator/plan/adapters.h"

#include <gtest/gtest.h>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

/// hidden 8, 4 heads of 2 that share 2 groups, MLP of 16 with a gate, 3 layers.
Json adapted(const Json& training) {
  Json plan = Json::parse(R"({
    "model": {"num_layers": 3, "hidden_size": 8, "num_attention_heads": 4, "num_query_groups": 2,
              "ffn_hidden_size": 16, "activation": "swiglu", "vocab_size": 32,
              "add_bias_linear": false, "position_embedding": "rope", "normalization": "RMSNorm",
              "max_position_embeddings": 8},
    "training": {"lora_rank": 4}})");
  plan["training"].update(training);
  return plan;
}

int64_t adapters_with(const Json& modules) {
  return adapter_parameter_count(small_plan(adapted({{"lora_target_modules", modules}})));
}

// A rank of 4, three layers: query and projection 8 + 8, key and value 8 + 4, the MLP's 8 + 16.
TEST(Adapters, HaveTwoMatricesBesideEachLayerThatIsNamed) {
  EXPECT_EQ(adapters_with(Json::array()), 3 * 4 * (16 + 12));  // q_proj and v_proj
  EXPECT_EQ(adapters_with({"q_proj", "k_proj", "v_proj", "o_proj"}), 3 * 4 * (2 * 16 + 2 * 12));
  EXPECT_EQ(adapters_with({"gate_proj", "down_proj"}), 3 * 4 * (2 * 24));
  EXPECT_EQ(adapters_with({"all-linear"}), 3 * 4 * (2 * 16 + 2 * 12 + 3 * 24));
  EXPECT_EQ(adapter_parameter_count(small_plan()), 0);
}

TEST(Adapters, AreAllThatIsTrained) {
  const Plan plan = small_plan(adapted(Json::object()));
  EXPECT_EQ(trained_parameter_count(plan), adapter_parameter_count(plan));
  EXPECT_EQ(held_parameter_count(plan) - trained_parameter_count(plan),
            parameter_count(plan.model, plan.padded_vocab_size()));
  EXPECT_EQ(plan.training.parameter_dtype(), Dtype::kFp32);
  EXPECT_EQ(plan.training.frozen_dtype(), Dtype::kBf16);
  EXPECT_EQ(plan.training.framework, Framework::kTransformers);
}

TEST(Adapters, OfOtherFrameworksAndModelsAreRefusedWithTheWayOut) {
  const auto expect_words = [](const Json& plan, const char* words) {
    const std::string text = complaint_about(plan);
    EXPECT_NE(text.find(words), std::string::npos) << words << " is not in\n" << text;
  };
  expect_words(adapted({{"framework", "nanotron"}}), "use --framework transformers or megatron-lm");
  expect_words(adapted({{"lora_target_modules", {"qkv"}}}), "use all-linear, q_proj");
  const std::string dropout = complaint_about(adapted({{"lora_rank", 0}, {"lora_dropout", 0.1}}));
  EXPECT_NE(dropout.find("training.lora_dropout, training.lora_rank = 0"), std::string::npos);
  EXPECT_EQ(dropout.find("lora_target_modules"), std::string::npos) << "which nobody gave";
  EXPECT_EQ(complaint_about(adapted({{"lora_target_modules", {"qkv"}}})).find("nothing would be"),
            std::string::npos);
  Json sharded = adapted({{"mixed_precision", false}});
  sharded["parallelism"]["zero_stage"] = 3;
  expect_words(sharded, "leave out --no-mixed-precision");
  Json plain_mlp = adapted({{"lora_target_modules", {"gate_proj"}}});
  plain_mlp["model"]["activation"] = "gelu";
  expect_words(plain_mlp, "nothing would be trained");
}

/// Megatron-Bridge's.
Json bridged(const Json& training) {
  Json plan = adapted(training);
  plan["training"]["framework"] = "megatron-lm";
  return plan;
}

// A rank of 4, three layers: one product for query, key and value 8 + 16, the projection 8 + 8,
// gate and up together 8 + 32, the last one 16 + 8.
TEST(MegatronAdapters, HaveTheNamesOfMegatronsLayersAndBesideAllOfThemByDefault) {
  const auto count = [](const Json& modules) {
    return adapter_parameter_count(small_plan(bridged({{"lora_target_modules", modules}})));
  };
  EXPECT_EQ(count({"linear_qkv"}), 3 * 4 * 24);
  EXPECT_EQ(count({"linear_proj", "linear_fc2"}), 3 * 4 * (16 + 24));
  EXPECT_EQ(count(Json::array()), 3 * 4 * (24 + 16 + 40 + 24));
  EXPECT_EQ(count({"all-linear"}), count(Json::array()));
}

TEST(MegatronAdapters, HaveTheTypeOfTheWeights) {
  const Plan plan = small_plan(bridged(Json::object()));
  EXPECT_EQ(plan.training.parameter_dtype(), Dtype::kBf16);
  EXPECT_EQ(plan.training.frozen_dtype(), Dtype::kBf16);
}

TEST(MegatronAdapters, AreRefusedWithTheWayOut) {
  const auto expect_words = [](const Json& plan, const char* words) {
    const std::string text = complaint_about(plan);
    EXPECT_NE(text.find(words), std::string::npos) << words << " is not in\n" << text;
  };
  expect_words(bridged({{"lora_target_modules", {"q_proj"}}}),
               "use all-linear, linear_qkv, linear_proj, linear_fc1, linear_fc2");
  Json split = bridged({{"lora_rank", 3}});
  split["parallelism"]["tensor"] = 2;
  expect_words(split, "use a rank that 2 divides");
  Json experts = bridged(Json::object());
  experts["model"]["num_experts"] = 4;
  expect_words(experts, "adapters of experts and of latent attention are not supported");
  expect_words(bridged({{"lora_target_modules", {"linear_fc1"}},
                        {"recompute", "selective"},
                        {"recompute_modules", {"mlp"}}}),
               "add linear_qkv or linear_proj");
  expect_words(bridged({{"fp4_format", "e2m1"}}), "training.fp4_format");
  expect_words(adapted({{"lora_a2a_experimental", true}}), "only Megatron-Bridge's adapters");
}

// c_attn of GPT-2, query_key_value of GPT-NeoX, qkv_proj of Phi-3: "Target modules {'q_proj'} not
// found in the base model" (peft/tuners/tuners_utils.py).
TEST(Adapters, OfAPackedProductHaveNoPartsOfIt) {
  const auto complaint = [](const Json& targets) {
    Json plan = adapted({{"lora_target_modules", targets}});
    plan["model"]["packed_qkv"] = true;
    return complaint_about(plan);
  };
  for (const Json& targets : {Json::array(), Json{"q_proj"}, Json{"v_proj", "o_proj"}}) {
    EXPECT_NE(complaint(targets).find("are one product"), std::string::npos) << targets;
  }
  EXPECT_EQ(complaint({"all-linear"}), "");
  EXPECT_EQ(complaint({"o_proj", "down_proj"}), "");
}

}  // namespace
}  // namespace estimator
