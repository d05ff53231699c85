#include "estimator/cluster/rank_classes.h"
#include "estimator/resolve/resolve_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

std::vector<std::vector<int64_t>> stages_of(const Plan& plan) {
  std::vector<std::vector<int64_t>> stages;
  for (const RankClass& rank_class : rank_classes(plan)) stages.push_back(rank_class.stages);
  return stages;
}

using Stages = std::vector<std::vector<int64_t>>;

TEST(RankClasses, AllRanksWithoutAPipelineAreAlike) {
  const auto classes = rank_classes(small_plan({{"parallelism", {{"tensor", 2}}}}));
  ASSERT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes[0].count, 8);
  EXPECT_EQ(classes[0].representative_rank, 0);
}

TEST(RankClasses, TheLastContextRankOfARingStandsForTheOthers) {
  const Json ring = {{"parallelism", {{"tensor", 2}, {"context", 4}}}};
  const auto classes = rank_classes(small_plan(ring));
  ASSERT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes[0].count, 8);
  EXPECT_EQ(classes[0].representative_rank, 6);
}

TEST(RankClasses, ContextRanksThatExchangeHeadsAreAlike) {
  const Json exchange = {{"parallelism", {{"context", 4}, {"context_comm", "a2a"}}}};
  EXPECT_EQ(rank_classes(small_plan(exchange))[0].representative_rank, 0);
}

/// Llama-3 8B with Muon, whose parameters are dealt to the data ranks in turn.
Plan dealt_plan(const Json& parallelism) {
  Json tree = {{"model", "llama3-8b"},
               {"cluster", {{"gpu", "h100"}, {"nodes", 1}, {"gpus_per_node", 8}}},
               {"parallelism", {{"zero_stage", 1}, {"use_layer_wise_param_layout", false}}},
               {"training", {{"optimizer", "muon"}, {"global_batch_size", 16}}}};
  tree["parallelism"].update(parallelism);
  return resolve_plan(tree, {});
}

// The parameters of a layer are two norms and four matrices, so there are 32 x 6 + 3 = 195. Output
// layer and embedding are numbers 194 and 193 of 2 x 8 that go round: data ranks 2 and 1. Matrices
// of each kind are twice 16, four for each rank.
TEST(RankClasses, TheOwnerOfTheEmbeddingStandsForTheOthersWhereParametersAreDealtInTurn) {
  EXPECT_EQ(rank_classes(dealt_plan(Json::object()))[0].representative_rank, 1);
  const Json by_layout = {{"use_layer_wise_param_layout", true}};
  EXPECT_EQ(rank_classes(dealt_plan(by_layout))[0].representative_rank, 0);
}

// Of 4 data ranks. The embedding is number 96 of the first stage, 96 = 12 x 8, and goes to rank 0.
// The output layer is number 97 of the last one, and goes to the second of ranks 4 to 7.
TEST(RankClasses, EachStageIsDealtItsOwnParameters) {
  const auto classes = rank_classes(dealt_plan({{"pipeline", 2}}));
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].representative_rank, 0);
  EXPECT_EQ(classes[1].representative_rank, 5);
}

// Of 8 data and context ranks: owners 1 and 2 are context rank 1 of data rank 0 and context rank 0
// of data rank 1. Of a ring the last context rank holds most.
TEST(RankClasses, OfSeveralOwnersTheLastOfARingStandsForTheOthers) {
  EXPECT_EQ(rank_classes(dealt_plan({{"context", 2}}))[0].representative_rank, 1);
  const Json exchange = {{"context", 2}, {"context_comm", "a2a"}};
  EXPECT_EQ(rank_classes(dealt_plan(exchange))[0].representative_rank, 2);
}

TEST(RankClasses, GpipeMiddleStagesAreAlike) {
  EXPECT_EQ(stages_of(pipeline_plan({{"parallelism", {{"pipeline_schedule", "gpipe"}}}})),
            (Stages{{0}, {1, 2}, {3}}));
}

// Where more tokens are predicted the final norm is on the stage of the last layer.
TEST(RankClasses, AStageWithTheFinalNormIsAlone) {
  Json changes = {
      {"model", {{"num_layers", 6}, {"position_embedding", "rope"}}},
      {"parallelism", {{"pipeline_schedule", "gpipe"}, {"layers_per_stage", {2, 2, 2, 0}}}}};
  EXPECT_EQ(stages_of(pipeline_plan(changes)), (Stages{{0}, {1, 2}, {3}}));
  changes["model"]["mtp_num_layers"] = 1;
  EXPECT_EQ(stages_of(pipeline_plan(changes)), (Stages{{0}, {1}, {2}, {3}}));
}

TEST(RankClasses, CountTheRanksOfAllTheirStages) {
  const auto classes = rank_classes(pipeline_plan(
      {{"cluster", {{"nodes", 2}}}, {"parallelism", {{"pipeline_schedule", "gpipe"}}}}));
  ASSERT_EQ(classes.size(), 3u);  // 4 stages of 2 data ranks
  EXPECT_EQ(classes[0].count, 2);
  EXPECT_EQ(classes[1].count, 4);
  EXPECT_EQ(classes[1].representative_rank, 2);
}

TEST(RankClasses, EachStageOfOneForwardOneBackwardHoldsItsOwnNumberOfMicroBatches) {
  EXPECT_EQ(stages_of(pipeline_plan()), (Stages{{0}, {1}, {2}, {3}}));
}

TEST(RankClasses, MiddleStagesAreAlikeWhenMicroBatchesAreFewerThanStages) {
  EXPECT_EQ(stages_of(pipeline_plan({{"training", {{"global_batch_size", 1}}}})),
            (Stages{{0}, {1, 2}, {3}}));
}

/// 8 stages of 2 chunks, 8 micro-batches.
Plan interleaved_plan(const Json& parallelism = Json::object()) {
  Json tree = {{"model", {{"num_layers", 16}}},
               {"parallelism", {{"pipeline", 8}, {"virtual_stages", 2}}}};
  tree["parallelism"].update(parallelism);
  return small_plan(tree);
}

// In flight min(16, 2 (7 - r) + 8 + 1): 16 up to stage 3.
TEST(RankClasses, InterleavedStagesDifferByWhatTheyHold) {
  EXPECT_EQ(stages_of(interleaved_plan()), (Stages{{0}, {1, 2, 3}, {4}, {5}, {6}, {7}}));
}

TEST(RankClasses, ChunksOfDifferentDepthDiffer) {
  const std::vector<int> layers = {1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1};
  EXPECT_EQ(stages_of(interleaved_plan({{"layers_per_stage", layers}})),
            (Stages{{0}, {1, 3}, {2}, {4}, {5}, {6}, {7}}));
}

TEST(RankClasses, StagesWhoseLayersHaveExpertsDiffer) {
  const Json experts = {{"num_experts", 4}, {"add_bias_linear", false}};
  const Json gpipe = {{"pipeline_schedule", "gpipe"}};
  Json plan = {{"model", experts}, {"parallelism", gpipe}};
  EXPECT_EQ(stages_of(pipeline_plan(plan)), (Stages{{0}, {1, 2}, {3}}));
  const int64_t layers = pipeline_plan(plan).model.num_layers;
  std::vector<int64_t> pattern(layers, 1);
  std::fill_n(pattern.begin(), layers / 2, 0);  // the first two of four stages are dense
  plan["model"]["moe_layer_freq"] = pattern;
  EXPECT_EQ(stages_of(pipeline_plan(plan)), (Stages{{0}, {1}, {2}, {3}}));
}

TEST(RankClasses, StagesOfDifferentDepthDiffer) {
  EXPECT_EQ(
      stages_of(pipeline_plan(
          {{"parallelism", {{"pipeline_schedule", "gpipe"}, {"layers_per_stage", {2, 1, 3, 2}}}}})),
      (Stages{{0}, {1}, {2}, {3}}));
}

TEST(RankClasses, RepresentativesOfTheMetaLayoutAreFirstRanksOfTheirStages) {
  const auto classes = rank_classes(meta_plan());
  ASSERT_EQ(classes.size(), 16u);
  for (std::size_t stage = 0; stage < classes.size(); ++stage) {
    EXPECT_EQ(classes[stage].representative_rank, static_cast<int64_t>(stage) * 1024);
    EXPECT_EQ(classes[stage].count, 1024);
  }
}

TEST(RankClasses, EveryRankIsCountedOnceInAMillionRanks) {
  const Plan plan = small_plan({{"model", {{"num_layers", 1000}}},
                                {"cluster", {{"nodes", 125000}}},
                                {"parallelism", {{"pipeline", 1000}, {"data", 1000}}},
                                {"training", {{"global_batch_size", 2000000}}}});
  int64_t ranks = 0;
  for (const RankClass& rank_class : rank_classes(plan)) ranks += rank_class.count;
  EXPECT_EQ(ranks, 1000000);
}

TEST(StagesToText, JoinsNeighboursOnly) {
  EXPECT_EQ(stages_to_text({0}), "0");
  EXPECT_EQ(stages_to_text({1, 2, 3}), "1-3");
  EXPECT_EQ(stages_to_text({1, 2, 5, 7, 8}), "1-2, 5, 7-8");
}

}  // namespace
}  // namespace estimator
