#include "estimator/plan/cuda_graphs.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "estimator/resolve/subject_rules.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

using enum GraphModule;

TrainingConfig graphs_of(std::vector<std::string> modules) {
  TrainingConfig training;
  training.cuda_graph_impl = CudaGraphImpl::kTransformerEngine;
  training.cuda_graph_modules = std::move(modules);
  return training;
}

TEST(GraphSpan, GoesFromTheFirstModuleToTheLast) {
  const auto span = graph_span(graphs_of({"attn", "moe_router", "moe_preprocess"}), true);
  ASSERT_TRUE(span);
  EXPECT_TRUE(span->holds(kAttention));
  EXPECT_TRUE(span->holds(kMlp));  // the norm before the router
  EXPECT_TRUE(span->holds(kMoePreprocess));
  EXPECT_FALSE(span->holds(kMoe));
}

TEST(GraphSpan, OfALayerWithoutExpertsHasTheirModulesNot) {
  const auto span = graph_span(graphs_of({"attn", "moe_router"}), false);
  ASSERT_TRUE(span);
  EXPECT_TRUE(span->holds(kAttention));
  EXPECT_FALSE(span->holds(kMlp));
  EXPECT_FALSE(graph_span(graphs_of({"moe_router"}), false));
}

TEST(GraphSpan, IsTheWholeLayerIfNothingIsNamed) {
  EXPECT_TRUE(graph_span(graphs_of({}), true)->holds(kMoe));
  EXPECT_TRUE(graph_span(graphs_of({}), false)->holds(kMlp));
  EXPECT_FALSE(graph_span(TrainingConfig(), true));
}

TEST(GraphSpan, WithoutAttentionBeginsWithTheNormOfTheMlp) {
  const auto span = graph_span(graphs_of({"moe_router"}), true);
  ASSERT_TRUE(span);
  EXPECT_EQ(span->first, kMlp);
  EXPECT_FALSE(span->holds(kAttention));
}

TEST(CudaGraphs, OfTheIterationHaveTwoNames) {
  TrainingConfig training = graphs_of({"full_iteration"});
  EXPECT_FALSE(captures_iteration(training));
  training.cuda_graph_impl = CudaGraphImpl::kLocal;
  EXPECT_TRUE(captures_iteration(training));
  EXPECT_FALSE(captures_layers(training));
}

TEST(PlaceInLayer, IsReadFromThePathOfAModule) {
  const auto part = [](const char* module) { return place_in_layer(module)->part; };
  EXPECT_EQ(part("layers.3.self_attention.linear_qkv.q_layernorm"), kAttention);
  EXPECT_EQ(part("layers.3.mlp.linear_fc1"), kMlp);
  EXPECT_EQ(part("layers.3.mlp.router"), kMoeRouter);
  EXPECT_EQ(part("layers.3.mlp.shared_experts.linear_fc2"), kMoeRouter);
  EXPECT_EQ(part("layers.3.mlp.preprocess"), kMoePreprocess);
  EXPECT_EQ(part("layers.3.mlp.experts.linear_fc1"), kMoe);
  EXPECT_EQ(part("mtp.layers.0.mtp_model_layer.self_attention"), kAttention);
  EXPECT_EQ(part("layers.3"), std::nullopt);
  EXPECT_EQ(place_in_layer("layers.12.mlp.router")->layer, "layers.12");
  EXPECT_EQ(place_in_layer("mtp.layers.0.mtp_model_layer")->layer, "mtp.layers.0");
  EXPECT_FALSE(place_in_layer("embedding"));
}

/// One mistake, and words of the message that it must get.
struct BadGraphs {
  Json plan;
  std::vector<std::string> words;
};

Json graphs(const char* impl, const Json& modules, const Json& more = Json::object()) {
  Json plan = {{"training", {{"cuda_graph_impl", impl}, {"cuda_graph_modules", modules}}}};
  plan.merge_patch(more);
  return plan;
}

Json with_training(const char* key, const Json& value) { return {{"training", {{key, value}}}}; }

TEST(CudaGraphRules, SayWhatIsWrongAndTheWayOut) {
  const Json experts = {{"model", {{"num_experts", 4}, {"add_bias_linear", false}}}};
  const std::vector<BadGraphs> plans = {
      {graphs("local", {"attn"}), {"captures by itself", "transformer_engine, or full_iteration"}},
      {graphs("transformer_engine", {"qkv"}), {"no CUDA graph", "cuda_graph_modules: qkv"}},
      {graphs("transformer_engine", {"moe_router"}), {"no experts whose graph"}},
      {graphs("transformer_engine", {"attn", "moe_preprocess"}, experts), {"add moe_router"}},
      {graphs("transformer_engine", Json::array(), experts),
       {"experts have a capacity", "attn,moe_router,moe_preprocess"}},
      {graphs("full_iteration", Json::array(), experts), {"experts that have a capacity"}},
      {graphs(
           "full_iteration", Json::array(), with_training("check_for_nan_in_loss_and_grad", true)),
       {"check of losses", "--no-check-for-nan-in-loss-and-grad"}},
      {graphs("transformer_engine", {"attn"}, with_training("recompute", "full")),
       {"recomputed as a whole", "full_iteration"}},
      {graphs("full_iteration", Json::array(), with_training("framework", "plain")),
       {"only Megatron-LM's CUDA graphs", "framework = plain"}}};
  for (const BadGraphs& bad : plans) {
    const std::string text = complaint_about(bad.plan);
    for (const std::string& word : bad.words) EXPECT_TRUE(contains(text, word)) << text;
  }
}

TEST(CudaGraphRules, OfTheWholeIterationDoNotCheckForNan) {
  const Plan plan = small_plan(graphs("full_iteration", Json::array()));
  EXPECT_FALSE(plan.training.check_for_nan_in_loss_and_grad.value());
}

}  // namespace
}  // namespace estimator
