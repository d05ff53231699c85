#include "estimator/plan/dealt_layers.h"

#include <gtest/gtest.h>

#include "estimator/plan/plan.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {
namespace {

using DealtLayers = std::vector<int64_t>;

// 34 of 4: nine for the first two, of which the first has the embedding.
TEST(DealtLayers, CountEmbeddingAndHeadAsALayerEach) {
  EXPECT_EQ(dealt_layers({.layers = 32, .pieces = 4}), (DealtLayers{8, 9, 8, 7}));
  EXPECT_EQ(dealt_layers({.layers = 126, .pieces = 16}),
            (DealtLayers{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7}));
}

TEST(DealtLayers, CountTheEndsAsTheJobSays) {
  EXPECT_EQ(dealt_layers({.layers = 32, .pieces = 4, .first_counts = 0, .last_counts = 4}),
            (DealtLayers{9, 9, 9, 5}));
}

TEST(DealtLayers, AreNoneWhereAnEndCountsMoreThanAPieceHas) {
  EXPECT_EQ(dealt_layers({.layers = 6, .pieces = 4, .last_counts = 3}), DealtLayers{});
  EXPECT_EQ(dealt_layers({.layers = 1, .pieces = 4}), DealtLayers{});
}

TEST(DealtLayers, AreTheDefaultOfTorchtitansStages) {
  Json tree = Json::parse(R"({
    "model": {"preset": "llama3-8b"},
    "cluster": {"gpu": "h100-sxm", "nodes": 1, "gpus_per_node": 8},
    "parallelism": {"pipeline": 4, "zero_stage": 2},
    "training": {"framework": "torchtitan", "dtype": "bf16", "micro_batch_size": 1,
                 "global_batch_size": 16}})");
  EXPECT_EQ(resolve_plan(tree, {}).layers_of_virtual_stages(), (DealtLayers{8, 9, 8, 7}));
  tree["parallelism"]["layers_per_stage"] = {8, 8, 8, 8};
  EXPECT_EQ(resolve_plan(tree, {}).layers_of_virtual_stages(), (DealtLayers{8, 8, 8, 8}));
}

}  // namespace
}  // namespace estimator
