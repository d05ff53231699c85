// Which plans and layouts can be composed, and of which pieces.
#include "estimator/compose/pieces.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "tests/estimator/compose/piece_plans.h"

namespace estimator {
namespace {

TEST(Composition, IsRefusedWhereSchedulesAreOthers) {
  EXPECT_EQ(obstacle_to_composition(piece_base()), "");
  EXPECT_NE(
      obstacle_to_composition(piece_base({{"parallelism", {{"pipeline_schedule", "gpipe"}}}})), "");
}

/// Each second layer attends to 32 tokens.
Plan windowed(int64_t stages, std::vector<int64_t> layers, Json freq = {2}) {
  const int64_t all = std::accumulate(layers.begin(), layers.end(), int64_t{0});
  return piece_base(
      {{"model",
        {{"num_layers", all}, {"sliding_window", 32}, {"window_attn_skip_freq", std::move(freq)}}},
       {"parallelism", {{"pipeline", stages}, {"layers_per_stage", layers}}}});
}

TEST(Composition, WantsPiecesThatHoldAllKindsOfLayersEqually) {
  EXPECT_EQ(obstacle_of_layout(windowed(2, {4, 4})), "");
  EXPECT_EQ(obstacle_of_layout(windowed(2, {2, 4}, {0, 1, 0, 1, 0, 1})), "");
  EXPECT_NE(obstacle_of_layout(windowed(2, {3, 5})), "");
  EXPECT_NE(obstacle_of_layout(windowed(2, {4, 4}, {4})), "") << "the small piece has two layers";
}

TEST(Composition, RepeatsThePatternOfLayersInItsPieces) {
  const Plan plan = windowed(2, {2, 4}, {1, 0, 1, 0, 1, 0});
  for (const PieceRun& run : piece_runs(plan)) {
    const ModelConfig& model = run.plan.model;
    for (int64_t layer = 0; layer < model.num_layers; ++layer) {
      EXPECT_EQ(model.has_window_in(layer), layer % 2 == 0) << layer;
    }
  }
}

}  // namespace
}  // namespace estimator
