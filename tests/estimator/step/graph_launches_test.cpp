#include "estimator/step/graph_launches.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "estimator/step/chunk_replay.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

constexpr int64_t kNone = GraphLaunches::kNone;

Plan plan_with_graphs(const char* impl, const Json& modules = Json::array()) {
  return small_plan({{"model", {{"num_experts", 4}, {"add_bias_linear", false}}},
                     {"training",
                      {{"cuda_graph_impl", impl},
                       {"cuda_graph_modules", modules},
                       {"moe_expert_capacity_factor", 1},
                       {"moe_pad_expert_input_to_capacity", true}}}});
}

struct GraphEvent {
  std::string module;
  Direction direction = Direction::kForward;
};

/// The graphs of kernels, one of each event.
std::vector<int64_t> graphs_of(const Plan& plan, const std::vector<GraphEvent>& kernels) {
  StepOrder order;
  for (const GraphEvent& kernel : kernels) {
    order.events.add(
        {.module = static_cast<int64_t>(order.modules.size()), .direction = kernel.direction});
    order.modules.push_back(kernel.module);
  }
  return graph_launches(plan, order, LaunchCost()).graph_of_event;
}

TEST(GraphLaunches, OfLayersHoldWhatThePlanCaptures) {
  const Plan plan =
      plan_with_graphs("transformer_engine", {"attn", "moe_router", "moe_preprocess"});
  EXPECT_EQ(graphs_of(plan,
                      {{"embedding"},
                       {"layers.0.input_layernorm"},
                       {"layers.0.self_attention.core_attention"},
                       {"layers.0"},  // the sum after attention
                       {"layers.0.pre_mlp_layernorm"},
                       {"layers.0.mlp.router"},
                       {"layers.0.mlp.preprocess"},
                       {"layers.0.mlp.dispatch"},
                       {"layers.0.mlp.experts.linear_fc1"},
                       {"layers.0"},  // the sum after the experts
                       {"layers.1.input_layernorm"},
                       {"layers.1.mlp.router"}}),
            (std::vector<int64_t>{kNone, 0, 0, 0, 0, 0, 0, kNone, kNone, kNone, 1, 1}));
}

TEST(GraphLaunches, OfALayerAreOneForForwardAndOneForBackward) {
  const Plan plan = plan_with_graphs("transformer_engine", {"attn"});
  EXPECT_EQ(graphs_of(plan,
                      {{"layers.0.self_attention.core_attention"},
                       {"layers.0.self_attention.core_attention", Direction::kBackward},
                       {"layers.0.self_attention.core_attention", Direction::kRecompute},
                       {"layers.0.self_attention.linear_qkv", Direction::kOptimizerStep}}),
            (std::vector<int64_t>{0, 1, 1, kNone}));
}

TEST(GraphLaunches, OfTheIterationHoldAllButTheOptimizersStep) {
  EXPECT_EQ(graphs_of(plan_with_graphs("full_iteration"),
                      {{"embedding"},
                       {"layers.0.mlp.experts.linear_fc1", Direction::kBackward},
                       {"", Direction::kOptimizerStep}}),
            (std::vector<int64_t>{0, 0, kNone}));
}

TEST(GraphLaunches, AreNoneWithoutGraphs) {
  EXPECT_TRUE(graphs_of(small_plan(), {{"layers.0.self_attention"}}).empty());
}

// The host needs 10 for each of four kernels of 1, or for all of a graph 10 and its launch.
TEST(GraphLaunches, AreIssuedAtOnce) {
  StepOrder order{.modules = {""}, .events = {}};
  PricedRecords records;
  for (const auto direction : {Direction::kForward, Direction::kBackward}) {
    for (int kernel = 0; kernel < 4; ++kernel) {
      order.events.add(
          {.item = static_cast<int64_t>(records.operators.size()), .direction = direction});
      records.operators.push_back(RecordPrice{.price = {.seconds = 1}, .issue_seconds = 10});
    }
  }
  const auto forward_seconds = [&] {
    return replay_chunk(order, records, 0, HostWaits{}).forward.compute_seconds;
  };
  EXPECT_NEAR(forward_seconds(), 40, 1e-9);
  records.graphs = {.graph_of_event = {0, 0, 0, 0, 1, 1, 1, 1}, .launch_seconds = 2};
  EXPECT_NEAR(forward_seconds(), 12, 1e-9);
}

// The gap before a kernel is shorter in a graph.
TEST(GraphLaunches, SaveGapsBetweenKernels) {
  StepOrder order{.modules = {""}, .events = {}};
  PricedRecords records;
  for (const auto direction : {Direction::kForward, Direction::kBackward}) {
    order.events.add(
        {.item = static_cast<int64_t>(records.operators.size()), .direction = direction});
    records.operators.push_back(RecordPrice{.price = {.seconds = 1}});
  }
  records.graphs = {.graph_of_event = {0, kNone}, .saved_seconds = 0.25};
  const ChunkReplay time = replay_chunk(order, records, 0, HostWaits{});
  EXPECT_NEAR(time.forward.compute_seconds, 0.75, 1e-9);
  EXPECT_NEAR(time.backward.compute_seconds, 1, 1e-9);
}

}  // namespace
}  // namespace estimator
