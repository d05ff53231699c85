#include "estimator/plan/plan.h"
#include "estimator/plan/option_table.h"

#include <gtest/gtest.h>

#include "estimator/plan/option_table.h"
#include "estimator/resolve/resolve_plan.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

TEST(Plan, ReadsTheOldWordForTheFramework) {
  const Json old = with_new_keys({{"training", {{"dialect", "nanotron"}, {"seed", 7}}}});
  EXPECT_EQ(old, (Json{{"training", {{"seed", 7}, {"framework", "nanotron"}}}}));
  const Json both = {{"training", {{"dialect", "nanotron"}, {"framework", "plain"}}}};
  EXPECT_EQ(with_new_keys(both), both);  // for the reader to refuse
  ASSERT_NE(find_plan_option("training.dialect"), nullptr);
  EXPECT_EQ(find_plan_option("training.dialect")->path, "training.framework");
}

TEST(Plan, IsRefusedAValueThatNobodyFilledIn) {
  Auto<int64_t> nodes;
  EXPECT_FALSE(nodes.is_known());
  EXPECT_THROW(nodes.value(), std::logic_error);
  nodes.fill_in(4);
  nodes.fill_in(5);
  EXPECT_EQ(nodes, 4);
}

TEST(Plan, FillsInWhatIsLeftOut) {
  const Plan plan = resolve_plan({{"model", "llama3-8b"},
                                  {"cluster", {{"gpu", "H100-SXM"}, {"nodes", 4}}},
                                  {"parallelism", {{"tensor", 2}}}},
                                 {});
  EXPECT_EQ(plan.model_preset, "llama3-8b");
  EXPECT_EQ(plan.cluster.gpu, "h100-sxm");
  EXPECT_EQ(plan.cluster.gpus_per_node, 8);
  EXPECT_EQ(plan.cluster.nics_per_node, 8);
  EXPECT_EQ(plan.cluster.intra_link.value(), "nvlink4");
  EXPECT_EQ(plan.world_size(), 32);
  EXPECT_EQ(plan.data_parallel_size(), 16);
  EXPECT_EQ(plan.global_batch_size(), 16);
  EXPECT_EQ(plan.micro_batches(), 1);
  EXPECT_EQ(plan.sequence_length(), 8192);
  EXPECT_EQ(plan.bucket_elements(), 40'000'000);
  EXPECT_EQ(plan.padded_vocab_size(), 128256);  // = 501 x 256
}

// 3 samples x 4 micro-batches x 8 data ranks.
TEST(Plan, HasTheGlobalBatchThatItsAccumulationSays) {
  const Json said = {
      {"micro_batch_size", 3}, {"global_batch_size", nullptr}, {"gradient_accumulation_steps", 4}};
  const Plan plan = small_plan({{"training", said}});
  EXPECT_EQ(plan.global_batch_size(), 96);
  EXPECT_EQ(plan.micro_batches(), 4);
  const Json tensor = {{"parallelism", {{"tensor", 2}}}, {"training", said}};
  EXPECT_EQ(small_plan(tensor).global_batch_size(), 48);
}

TEST(Plan, TakesTheWorldFromTheEnvironment) {
  const Plan plan = small_plan({{"cluster", {{"nodes", nullptr}, {"gpus_per_node", nullptr}}},
                                {"training", {{"global_batch_size", nullptr}}}},
                               {.world_size = 32});
  EXPECT_EQ(plan.cluster.nodes, 4);
  EXPECT_EQ(plan.data_parallel_size(), 32);
}

TEST(Plan, OfASmallWorldIsOneSmallMachine) {
  const Plan plan = small_plan({{"cluster", {{"nodes", nullptr}, {"gpus_per_node", nullptr}}},
                                {"training", {{"global_batch_size", nullptr}}}},
                               {.world_size = 2});
  EXPECT_EQ(plan.cluster.nodes, 1);
  EXPECT_EQ(plan.cluster.gpus_per_node, 2);
}

TEST(Plan, TakesTheWorldFromItsDegrees) {
  const Plan plan = small_plan({{"cluster", {{"nodes", nullptr}, {"gpus_per_node", nullptr}}},
                                {"parallelism", {{"tensor", 4}, {"pipeline", 2}, {"data", 3}}},
                                {"training", {{"global_batch_size", nullptr}}}});
  EXPECT_EQ(plan.world_size(), 24);
}

// Megatron-LM pads to a multiple of 128 x TP: GPT-2's 50,257 become 50,304 for TP 1 and 51,200 for
// TP 8.
TEST(Plan, PadsTheVocabularyAsMegatronDoes) {
  const auto padded = [](const char* framework, int64_t tensor) {
    return small_plan({{"model", {{"vocab_size", 50257}}},
                       {"parallelism", {{"tensor", tensor}}},
                       {"training", {{"framework", framework}}}})
        .padded_vocab_size();
  };
  EXPECT_EQ(padded("megatron-lm", 1), 50304);
  EXPECT_EQ(padded("megatron-lm", 8), 51200);
  EXPECT_EQ(padded("plain", 1), 50257);
}

// Megatron-LM's DDP: max(40 million, 1 million x data ranks).
TEST(Plan, GrowsGradientBucketsWithTheDataRanks) {
  EXPECT_EQ(meta_plan().bucket_elements(), 128'000'000);
  EXPECT_EQ(small_plan().bucket_elements(), 40'000'000);
  const Plan context = small_plan({{"cluster", {{"nodes", 64}}},
                                   {"parallelism", {{"context", 8}}},
                                   {"training", {{"global_batch_size", 64}}}});
  EXPECT_EQ(context.data_parallel_size(), 64);
  EXPECT_EQ(context.bucket_elements(), 512'000'000);
}

TEST(Plan, LeavesSequenceParallelOffWithoutTensorRanks) {
  EXPECT_FALSE(
      small_plan({{"parallelism", {{"sequence_parallel", true}}}}).parallelism.sequence_parallel);
}

/// A preset with overrides, on one GPU.
ModelConfig overridden(const char* preset, const Json& overrides) {
  return resolve_plan({{"model", {{"preset", preset}, {"overrides", overrides}}},
                       {"cluster", {{"gpu", "h100-sxm"}, {"nodes", 1}, {"gpus_per_node", 1}}}},
                      {})
      .model;
}

TEST(Plan, OverridesAPreset) {
  const ModelConfig model = overridden("gpt2", {{"num_layers", 3}});
  EXPECT_EQ(model.num_layers, 3);
  EXPECT_EQ(model.hidden_size, 768);
}

TEST(Plan, WhatThePresetDerivedFollowsItsOverrides) {
  const ModelConfig heads = overridden("gpt2", {{"num_attention_heads", 6}});
  EXPECT_EQ(heads.kv_channels, 128);
  EXPECT_EQ(heads.num_query_groups, 6);
  EXPECT_EQ(overridden("gpt2", {{"hidden_size", 1536}}).ffn_hidden_size, 6144);
}

TEST(Plan, WhatThePresetStatesStays) {
  const ModelConfig model = overridden("llama3-8b", {{"hidden_size", 8192}});
  EXPECT_EQ(model.ffn_hidden_size, 14336);
  EXPECT_EQ(model.num_query_groups, 8);
  EXPECT_EQ(model.kv_channels, 256);
}

TEST(Plan, ReadsBackAsItself) {
  for (const Plan& plan : {small_plan(), pipeline_plan(), meta_plan()}) {
    const Json json = to_json(plan);
    EXPECT_EQ(to_json(resolve_plan(json, {})).dump(), json.dump());
    EXPECT_EQ(to_json(resolve_plan(Json::parse(json.dump()), {})).dump(), json.dump());
  }
}

TEST(Plan, OfTheMetaLayout) {
  const Plan plan = meta_plan();
  EXPECT_EQ(plan.world_size(), 16384);
  EXPECT_EQ(plan.data_parallel_size(), 128);
  EXPECT_EQ(plan.micro_batches(), 16);
  EXPECT_EQ(plan.tokens_per_step(), 16'777'216);
  EXPECT_EQ(plan.layers_of_chunks(0).front(), 7);
}

TEST(Plan, SpreadsLayersOverVirtualStagesInModelOrder) {
  const auto pieces = [](const Json& parallelism) {
    Json tree = {{"parallelism", {{"pipeline", 2}, {"virtual_stages", 2}}}};
    tree["parallelism"].update(parallelism);
    return small_plan(tree).layers_of_virtual_stages();
  };
  using Layers = std::vector<int64_t>;
  EXPECT_EQ(pieces(Json::object()), (Layers{2, 2, 2, 2}));
  EXPECT_EQ(pieces({{"layers_per_stage", {6, 2}}}), (Layers{3, 1, 3, 1}));
  EXPECT_EQ(pieces({{"layers_per_stage", {1, 2, 3, 2}}}), (Layers{1, 2, 3, 2}));
  const Plan plan =
      small_plan({{"parallelism",
                   {{"pipeline", 2}, {"virtual_stages", 2}, {"layers_per_stage", {1, 2, 3, 2}}}}});
  EXPECT_EQ(plan.layers_of_chunks(0), (Layers{1, 3}));
  EXPECT_EQ(plan.layers_of_chunks(1), (Layers{2, 2}));
}

TEST(Plan, NamesUnknownKeysWithTheNearest) {
  EXPECT_EQ(complaint_about({{"paralellism", {{"tensor", 2}}}}, {.origin = "plan.json"}),
            "error: unknown key\n  plan.json: paralellism\n  help: did you mean parallelism?\n");
  const std::string text = complaint_about({{"parallelism", {{"tensro", 2}}}});
  EXPECT_NE(text.find("parallelism.tensro"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean tensor?"), std::string::npos) << text;
}

TEST(Plan, MayNameItsSchemaForEditors) {
  EXPECT_EQ(complaint_about({{"$schema", "plan.schema.json"}}), "");
}

TEST(Plan, NamesTheNearestModel) {
  const std::string text = complaint_about({{"model", "llama3-8bb"}});
  EXPECT_NE(text.find("unknown model"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean llama3-8b?"), std::string::npos) << text;
}

TEST(Plan, WithoutAModelIsRefused) {
  EXPECT_NE(complaint_about({{"model", nullptr}}).find("the plan names no model"),
            std::string::npos);
}

TEST(Plan, MustBeAnObject) {
  EXPECT_THROW(resolve_plan(Json::array(), {}), UserError);
  EXPECT_THROW(resolve_plan(Json("text"), {}), UserError);
}

TEST(Plan, MachinesHaveTheUsualGpusOfTheirKind) {
  const auto machines = [](const char* gpu, int64_t world) {
    const Plan plan =
        small_plan({{"cluster", {{"gpu", gpu}, {"nodes", nullptr}, {"gpus_per_node", nullptr}}},
                    {"parallelism", {{"data", world}}},
                    {"training", {{"global_batch_size", world}}}},
                   {.world_size = world});
    return std::pair(plan.cluster.nodes.value(), plan.cluster.gpus_per_node.value());
  };
  EXPECT_EQ(machines("h100", 32), std::pair(int64_t{4}, int64_t{8}));
  EXPECT_EQ(machines("gh200", 32), std::pair(int64_t{32}, int64_t{1}));
  EXPECT_EQ(machines("gb200", 36), std::pair(int64_t{9}, int64_t{4}));
}

}  // namespace
}  // namespace estimator
