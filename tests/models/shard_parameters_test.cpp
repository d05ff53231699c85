// The shards of all ranks are the model: no parameter is missing, none is there twice.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "estimator/plan/dealt_parameters.h"
#include "estimator/plan/model_config.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/resolve/resolve_plan.h"
#include "models/optimizer/muon.h"
#include "models/pipeline/stage.h"
#include "tests/models/small_shards.h"

namespace models {
namespace {

using estimator::Json;

struct Layout {
  int64_t tensor = 1;
  int64_t pipeline = 1;
  std::vector<int64_t> layers_per_stage;
};

estimator::Plan preset_plan(const std::string& preset, const Layout& layout) {
  Json tree = {{"model", preset},
               {"cluster", {{"gpu", "h100"}, {"gpus_per_node", 8}}},
               {"parallelism",
                {{"tensor", layout.tensor},
                 {"pipeline", layout.pipeline},
                 {"data", 8},
                 {"layers_per_stage", layout.layers_per_stage}}},
               {"training", {{"make_vocab_size_divisible_by", 1}}}};
  return estimator::resolve_plan(tree, {});
}

/// Elements over the ranks of one replica; replicated ones counted for tensor rank 0 alone, tied
/// copies not at all.
int64_t elements_of_all_shards(const estimator::Plan& plan) {
  SilentObserver observer;
  int64_t elements = 0;
  for (int64_t stage = 0; stage < plan.parallelism.pipeline; ++stage) {
    for (int64_t tensor = 0; tensor < plan.parallelism.tensor; ++tensor) {
      const int64_t rank =
          estimator::ParallelLayout(plan.parallelism).rank({.tensor = tensor, .pipeline = stage});
      ShardContext context = meta_context(plan, rank, observer);
      const Stage shard(context);
      for (const auto& parameter : shard.parameters().record().tensors) {
        if (parameter.shared_copy || (tensor > 0 && !parameter.tensor_sharded)) continue;
        int64_t count = 1;
        for (const int64_t size : parameter.shape) count *= size;
        elements += count;
      }
    }
  }
  return elements;
}

using SortedSizes = std::multiset<estimator::ParameterSize>;

SortedSizes sizes_of_shard(const estimator::Plan& plan, int64_t stage) {
  SilentObserver observer;
  const int64_t rank = estimator::ParallelLayout(plan.parallelism).rank({.pipeline = stage});
  ShardContext context = meta_context(plan, rank, observer);
  Stage shard(context);
  SortedSizes sizes;
  for (const Parameter* parameter : shard.parameters().in_order()) {
    sizes.insert({parameter->value.numel(), is_of_muon(*parameter), parameter->expert});
  }
  return sizes;
}

void expect_the_sizes_of_the_shards(const estimator::Plan& plan) {
  for (int64_t stage = 0; stage < plan.parallelism.pipeline; ++stage) {
    const auto sizes = estimator::parameters_of_stage(plan, stage);
    EXPECT_EQ(SortedSizes(sizes.begin(), sizes.end()), sizes_of_shard(plan, stage)) << stage;
  }
}

// The estimator chooses by them which data rank is run (dealt_parameters.h).
TEST(SizesOfStages, AreThoseOfTheShards) {
  const Json parallelism = {{"tensor", 2}, {"pipeline", 2}, {"sequence_parallel", true}};
  const Json prediction = {{"mtp_num_layers", 1}, {"position_embedding", "rope"}};
  const Json experts = {{"num_experts", 4},
                        {"moe_router_topk", 2},
                        {"add_bias_linear", false},
                        {"moe_layer_freq", {0, 1}},
                        {"moe_shared_expert_intermediate_size", 8}};
  const auto changed = [&](Json changes, const Json& model) {
    changes["model"].update(model);
    changes["cluster"]["gpus_per_node"] = 4;
    changes["parallelism"] = parallelism;
    changes["training"]["framework"] = "megatron-lm";
    return changes;
  };
  const Json gpt = Json::object(), none = Json::object();
  for (const Json& changes : {changed(gpt, none),
                              changed(gpt, {{"qk_layernorm", true}}),
                              changed(gpt, experts),
                              changed(llama_changes(), none),
                              changed(llama_changes(), prediction),
                              changed(llama_changes(), experts),
                              changed(gpt_oss_changes(), none),
                              changed(latent_changes(), none)}) {
    SCOPED_TRACE(changes.dump());
    expect_the_sizes_of_the_shards(small_plan(changes));
  }
}

/// The names behind "layers.0." of the first layer's parameters, in order.
std::vector<std::string> names_in_first_layer(const char* framework) {
  Json changes = llama_changes();
  changes["model"]["qk_layernorm"] = true;
  changes["training"]["framework"] = framework;
  const estimator::Plan plan = small_plan(changes);
  SilentObserver observer;
  ShardContext context = meta_context(plan, 0, observer);
  Stage shard(context);
  const std::string layer = "layers.0.";
  std::vector<std::string> names;
  for (const Parameter* parameter : shard.parameters().in_order()) {
    if (parameter->name.starts_with(layer)) names.push_back(parameter->name.substr(layer.size()));
  }
  return names;
}

// The gradients of what tensor ranks do not split are summed in this order.
TEST(ParametersOfALayer, EndWithItsNormsInTorchTitan) {
  const std::vector<std::string> names = names_in_first_layer("torchtitan");
  ASSERT_GE(names.size(), 5U);
  const std::vector<std::string> last(names.end() - 2, names.end());
  EXPECT_EQ(last, (std::vector<std::string>{"input_layernorm.weight", "pre_mlp_layernorm.weight"}));
  EXPECT_EQ(names_in_first_layer("plain").front(), "input_layernorm.weight");
}

// They are no layers of Megatron-LM.
TEST(SizesOfStages, AreThoseOfTheShardsOfOtherLayers) {
  for (const Json& model : {Json{{"norm_position", "after"}, {"add_output_bias", true}},
                            Json{{"norm_position", "both"}, {"add_bias_linear", false}},
                            Json{{"norm_parameters", "weight"}, {"tie_embeddings", false}},
                            Json{{"norm_parameters", "none"}, {"qk_layernorm", true}},
                            Json{{"add_bias_linear", false}, {"add_attention_bias", true}},
                            Json{{"add_bias_linear", false}, {"add_mlp_bias", true}}}) {
    SCOPED_TRACE(model.dump());
    expect_the_sizes_of_the_shards(
        small_plan({{"model", model},
                    {"parallelism", {{"tensor", 2}, {"pipeline", 2}, {"sequence_parallel", true}}},
                    {"cluster", {{"gpus_per_node", 4}}},
                    {"training", {{"framework", "plain"}}}}));
  }
  expect_the_sizes_of_the_shards(
      small_plan({{"model", {{"qk_layernorm", true}, {"qk_layernorm_whole", true}}}}));
}

class PresetShards : public testing::TestWithParam<std::string> {};

TEST_P(PresetShards, AddUpToThePublishedCountOnOneRank) {
  EXPECT_EQ(elements_of_all_shards(preset_plan(GetParam(), {})),
            estimator::find_model_preset(GetParam())->parameters);
}

INSTANTIATE_TEST_SUITE_P(AllPresets, PresetShards, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& preset : estimator::model_presets()) {
                             names.push_back(preset.name);
                           }
                           return names;
                         }()));

TEST(Shards, OfLlama405bInMetasLayoutAddUpToThePublishedCount) {
  const std::vector<int64_t> layers = {7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7};
  const auto plan =
      preset_plan("llama3-405b", {.tensor = 8, .pipeline = 16, .layers_per_stage = layers});
  EXPECT_EQ(elements_of_all_shards(plan), 405'853'388'800);
}

TEST(Shards, OfTiedGpt3OverStagesCountTheSharedEmbeddingOnce) {
  // 50,257 rows do not divide by 8: pad them as Megatron does, 51,200 rows.
  const Json tree = {{"model", "gpt3-175b"},
                     {"cluster", {{"gpu", "a100"}, {"gpus_per_node", 8}}},
                     {"parallelism", {{"tensor", 8}, {"pipeline", 8}, {"data", 1}}},
                     {"training", {{"framework", "megatron-lm"}, {"sequence_length", 2048}}}};
  const auto plan = estimator::resolve_plan(tree, {});
  EXPECT_EQ(plan.padded_vocab_size(), 51'200);
  EXPECT_EQ(elements_of_all_shards(plan), 174'604'259'328 + (51'200 - 50'257) * 12'288);
}

TEST(Shards, OfLatentAttentionAddUpToItsCount) {
  Json changes = latent_changes();
  changes["cluster"]["gpus_per_node"] = 2;
  changes["parallelism"] = {{"tensor", 2}, {"sequence_parallel", true}};
  const auto plan = small_plan(changes);
  EXPECT_EQ(elements_of_all_shards(plan), estimator::parameter_count(plan.model, 64));
}

// The last stage has a copy of the embedding; if it is tied it has an output layer, too, which
// Megatron-LM makes and never uses.
TEST(Shards, ThatPredictMoreTokensAddUpToTheCount) {
  for (const bool tied : {false, true}) {
    Json changes = llama_changes();
    changes["model"]["mtp_num_layers"] = 2;
    changes["model"]["tie_embeddings"] = tied;
    changes["cluster"]["gpus_per_node"] = 4;
    changes["parallelism"] = {{"tensor", 2}, {"pipeline", 2}};
    const auto plan = small_plan(changes);
    EXPECT_EQ(elements_of_all_shards(plan), estimator::parameter_count(plan.model, 64));
    SilentObserver observer;
    ShardContext context = meta_context(plan, 2, observer);
    std::map<std::string, bool> is_copy;
    for (const auto& parameter : Stage(context).parameters().record().tensors) {
      is_copy[parameter.name] = parameter.shared_copy;
    }
    EXPECT_TRUE(is_copy.at("embedding.word_embeddings.weight"));
    EXPECT_EQ(is_copy.at("output_layer.weight"), tied);
    EXPECT_TRUE(is_copy.contains("mtp.layers.1.eh_proj.weight"));
    EXPECT_TRUE(is_copy.contains("mtp.layers.1.mtp_model_layer.mlp.linear_fc2.weight"));
    EXPECT_FALSE(is_copy.contains("mtp.layers.2.enorm.weight"));
  }
}

TEST(Shards, NumberLayersOverTheWholeModel) {
  SilentObserver observer;
  const auto plan = preset_plan("llama3-8b", {.pipeline = 2});
  ShardContext context = meta_context(plan, plan.world_size() / 2, observer);
  std::set<std::string> names;
  for (const auto& parameter : Stage(context).parameters().record().tensors) {
    names.insert(parameter.name);
  }
  EXPECT_TRUE(names.contains("layers.16.self_attention.linear_qkv.weight"));
  EXPECT_TRUE(names.contains("layers.31.mlp.linear_fc2.weight"));
  EXPECT_TRUE(names.contains("output_layer.weight"));
  EXPECT_FALSE(names.contains("layers.15.mlp.linear_fc2.weight"));
  EXPECT_FALSE(names.contains("embedding.word_embeddings.weight"));
}

TEST(Shards, OfTensorRanksAreCutFromTheSameFullTensor) {
  const Json two_ranks = {{"cluster", {{"gpus_per_node", 2}}}, {"parallelism", {{"tensor", 2}}}};
  Json changes = llama_changes();
  const auto whole_plan = small_plan(changes);
  changes.merge_patch(two_ranks);
  const auto split_plan = small_plan(changes);

  SilentObserver observer;
  const auto weight = [&](const estimator::Plan& plan, int64_t rank, const std::string& name) {
    ShardContext context = meta_context(plan, rank, observer);
    context.device = at::Device(at::kCPU);
    Stage stage(context);
    for (const Parameter& parameter : stage.parameters().all()) {
      if (parameter.name == name) return parameter.value.detach().clone();
    }
    throw std::logic_error("no parameter " + name);
  };
  // Gate and up stand one after the other: a rank holds half of each. ffn 48: rows 0-23 of the
  // gate are rank 0's, rows 24-47 rank 1's.
  const at::Tensor full = weight(whole_plan, 0, "layers.1.mlp.linear_fc1.weight");
  const at::Tensor second = weight(split_plan, 1, "layers.1.mlp.linear_fc1.weight");
  EXPECT_TRUE(second.narrow(0, 0, 24).equal(full.narrow(0, 24, 24)));
  EXPECT_TRUE(second.narrow(0, 24, 24).equal(full.narrow(0, 72, 24)));
  // Row parallel: columns are cut.
  const at::Tensor projection = weight(whole_plan, 0, "layers.0.self_attention.linear_proj.weight");
  EXPECT_TRUE(weight(split_plan, 1, "layers.0.self_attention.linear_proj.weight")
                  .equal(projection.narrow(1, 16, 16)));
}

}  // namespace
}  // namespace models
