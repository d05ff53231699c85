#include "estimator/communication/tree_pipeline.h"

#include <gtest/gtest.h>

#include "estimator/base/units.h"

namespace estimator {
namespace {

constexpr NcclTopology kThreeMachines{.ranks = 12, .nodes = 3};

NcclOption tree(NcclProtocol protocol) {
  return {NcclAlgorithm::kTree, protocol, {.count = 4, .in_node_gbps = 48, .across_gbps = 24}};
}

// 512 KiB at 24 GB/s are 21.845 us, on three ranks' hops up and three down; at 12 GB/s twice as
// long, on one hop up and one down.
TEST(TreePipeline, FillsWithAChunkOnEachHopUpAndDown) {
  const auto us = [](double slowdown) {
    return tree_fill_us(tree(NcclProtocol::kSimple), kThreeMachines, kGiB, slowdown);
  };
  EXPECT_NEAR(us(1), 6 * 21.845 + 2 * 43.691, 0.01);
  EXPECT_NEAR(us(3), 6 * 21.845 + 6 * 43.691, 0.01);
}

// Eight channels run: of 1 MiB each has 128 KiB, a quarter of a chunk.
TEST(TreePipeline, ChunksOfALittleBufferAreItsParts) {
  const auto us = [](int64_t bytes) {
    return tree_fill_us(tree(NcclProtocol::kSimple), kThreeMachines, bytes, 1);
  };
  EXPECT_NEAR(us(kMiB), us(kGiB) / 4, 1e-6);
}

TEST(TreePipeline, OfLinesIsEmpty) {
  EXPECT_EQ(tree_fill_us(tree(NcclProtocol::kLl128), kThreeMachines, kGiB, 1), 0);
  EXPECT_EQ(tree_fill_us(tree(NcclProtocol::kLl), kThreeMachines, kGiB, 1), 0);
}

}  // namespace
}  // namespace estimator
