#include "estimator/resolve/subject_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

/// One mistake, and words of the message that it must get.
struct BadRecompute {
  Json training;
  std::vector<std::string> words;
};

Json by_layer(const char* option) {
  return {{"framework", "torchtitan"}, {"recompute", "selective"}, {"selective_ac_option", option}};
}

Json modules(const Json& named, const char* framework = "megatron-lm") {
  return {{"framework", framework}, {"recompute", "selective"}, {"recompute_modules", named}};
}

TEST(RecomputeRules, SayWhatIsWrongAndTheWayOut) {
  const std::vector<std::string> no_number = {"by operator or of every Nth layer", "use op"};
  const std::vector<BadRecompute> plans = {
      {{{"recompute", "selective"}, {"selective_ac_option", "2"}},
       {"only TorchTitan", "selective_ac_option = 2, training.framework = megatron-lm"}},
      {{{"framework", "torchtitan"}, {"selective_ac_option", "2"}},
       {"only for selective recompute", "recompute = none", "--recompute-granularity selective"}},
      {by_layer("-2"), no_number},
      {by_layer("2.5"), no_number},
      {by_layer(""), no_number},
      {by_layer("ops"), no_number},
      {by_layer("99999999999999999999"), no_number},
      {modules({"mlp", "core_attn", "qkv"}),
       {"cannot be recomputed", "recompute_modules: qkv", "core_attn, mlp, moe"}},
      {modules({"layernorm", "mlp", "moe"}, "nanotron"),
       {"only Megatron-LM", "layernorm,mlp,moe, training.framework = nanotron"}},
      {modules({"layernorm", "moe", "mla_up_proj"}),
       {"only multi-latent attention", "leave out mla_up_proj"}},
  };
  for (const BadRecompute& plan : plans) {
    SCOPED_TRACE(plan.training);
    const std::string text = complaint_about({{"training", plan.training}});
    EXPECT_NE(text.find("help: "), std::string::npos) << text;
    for (const std::string& words : plan.words) {
      EXPECT_NE(text.find(words), std::string::npos) << words << " is not in\n" << text;
    }
  }
}

TEST(RecomputeRules, RefuseMegatronsMlpWithBiases) {
  const Json plan = {{"model", {{"add_bias_linear", true}}},
                     {"training", modules({"mlp", "moe", "layernorm"})}};
  const std::string text = complaint_about(plan);
  EXPECT_TRUE(contains(text, "an MLP with biases")) << text;
  EXPECT_TRUE(contains(text, "add --disable-bias-linear")) << text;
}

Json divided_inputs(const Json& training, bool sequence_parallel = false) {
  Json plan = {{"cluster", {{"gpus_per_node", 4}}},
               {"parallelism", {{"tensor", 4}, {"sequence_parallel", sequence_parallel}}},
               {"training", {{"recompute", "full"}, {"distribute_saved_activations", true}}}};
  plan["training"].update(training);
  return plan;
}

TEST(RecomputeRules, RefuseDividedInputsThatNoProgramHas) {
  const auto expect_words = [](const Json& plan, const std::vector<std::string>& words) {
    const std::string text = complaint_about(plan);
    for (const std::string& word : words) EXPECT_TRUE(contains(text, word)) << text;
  };
  expect_words(divided_inputs({{"framework", "nanotron"}}),
               {"does not divide", "training.framework = nanotron", "megatron-deepspeed"});
  expect_words(divided_inputs({{"recompute", "selective"}}),
               {"only the inputs of whole layers", "recompute = selective"});
  expect_words(divided_inputs(Json::object(), true),
               {"sequence parallelism divides", "leave out one"});
  Json predicting = divided_inputs(Json::object());
  predicting["model"] = {{"mtp_num_layers", 2}, {"position_embedding", "rope"}};
  expect_words(predicting, {"Megatron-LM fails", "model.mtp_num_layers = 2", "leave out one"});
  EXPECT_EQ(complaint_about(divided_inputs(Json::object())), "");
  EXPECT_EQ(complaint_about(divided_inputs({{"framework", "megatron-deepspeed"}})), "");
}

TEST(RecomputeRules, LetGoodPlansPass) {
  for (const char* option : {"op", "0", "1", "2", "100"}) {
    EXPECT_EQ(complaint_about({{"training", by_layer(option)}}), "") << option;
  }
  EXPECT_EQ(complaint_about({{"training", {{"recompute", "selective"}}}}), "");
  EXPECT_EQ(complaint_about({{"training", {{"selective_ac_option", "op"}}}}), "");
  EXPECT_EQ(complaint_about({{"training", modules({"layernorm", "moe", "moe_act"})}}), "");
}

}  // namespace
}  // namespace estimator
