#include "estimator/what_if/layout_bounds.h"

#include <gtest/gtest.h>

#include "estimator/base/fields.h"
#include "estimator/resolve/resolve_plan.h"
#include "estimator/what_if/least_bytes.h"

namespace estimator {
namespace {

Plan bounds_plan(const Json& changes) {
  Json tree = Json::parse(R"({
    "model": {"num_layers": 8, "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 1000,
              "max_position_embeddings": 128},
    "cluster": {"gpu": "h100-sxm", "nodes": 1, "gpus_per_node": 8},
    "parallelism": {"pipeline": 4},
    "training": {"sequence_length": 128, "micro_batch_size": 2, "global_batch_size": 32}})");
  tree.merge_patch(changes);
  return resolve_plan(tree, {});
}

constexpr LayerCost kCost{
    .forward_seconds = 1, .backward_seconds = 2, .activation_bytes = 1'000'000};

TEST(LayoutBounds, TakeTheWorkOfAStageAndTheIdealBubble) {
  // 8 micro-batches of 2 samples through 2 layers of 3 s, and 3 more in the bubble.
  EXPECT_DOUBLE_EQ(least_step_seconds(bounds_plan(Json::object()), kCost), (8 + 3) * 2 * 2 * 3.0);
  // Two chunks halve the bubble.
  EXPECT_DOUBLE_EQ(
      least_step_seconds(bounds_plan({{"parallelism", {{"virtual_stages", 2}}}}), kCost),
      (8 + 1.5) * 2 * 2 * 3.0);
}

TEST(LayoutBounds, TakeTheForwardTwiceWhereLayersAreRecomputed) {
  EXPECT_DOUBLE_EQ(least_step_seconds(bounds_plan({{"training", {{"recompute", "full"}}}}), kCost),
                   (8 + 3) * 2 * 2 * 4.0);
}

TEST(LayoutBounds, HoldTheActivationsOfAllForwardsInFlight) {
  // Four forwards of 2 samples, each through 2 layers.
  const Plan plan = bounds_plan(Json::object());
  EXPECT_EQ(least_peak_bytes(plan, kCost), least_bytes(plan) + 4 * 2 * 2 * 1'000'000);
  // A recomputed layer holds its input: 128 x 64 elements of 2 bytes.
  const Plan full = bounds_plan({{"training", {{"recompute", "full"}}}});
  EXPECT_EQ(least_peak_bytes(full, kCost), least_bytes(full) + 4 * 2 * 2 * 128 * 64 * 2);
}

TEST(LayoutBounds, UseTheCostOfTheNextLargerMicroBatch) {
  const LayerCosts costs = {{1, {.forward_seconds = 5}}, {4, {.forward_seconds = 3}}};
  EXPECT_EQ(cost_for(bounds_plan(Json::object()), costs).forward_seconds, 3);
  EXPECT_EQ(cost_for(bounds_plan({{"training", {{"micro_batch_size", 8}}}}), costs).forward_seconds,
            0);
}

TEST(LayoutBounds, ProbeTheMiddleOfAPipelineAlsoForOneStage) {
  const std::vector<PieceRun> runs = probe_runs(bounds_plan({{"parallelism", {{"pipeline", 1}}}}));
  ASSERT_EQ(runs.size(), 2u);
  for (const PieceRun& run : runs) {
    EXPECT_EQ(run.place, StagePlace::kMiddle);
    EXPECT_EQ(run.layers, 2);
  }
  EXPECT_EQ(runs[0].in_flight, 3);
  EXPECT_EQ(runs[1].in_flight, 2);
}

}  // namespace
}  // namespace estimator
