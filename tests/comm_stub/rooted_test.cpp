#include "stub_test.h"

namespace comm_stub {
namespace {

using Rooted = StubTest;

TEST_F(Rooted, BroadcastLeavesTheRootAsItIs) {
  Tensors tensors = {floats({1, 2})};
  stub(4, 2)->broadcast(tensors, {.rootRank = 2});
  EXPECT_TRUE(same(tensors[0], floats({1, 2})));
}

TEST_F(Rooted, BroadcastGivesZerosToOthers) {
  Tensors tensors = {floats({1, 2})};
  stub(4, 1)->broadcast(tensors, {.rootRank = 2});
  EXPECT_TRUE(same(tensors[0], floats({0, 0})));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].kind, Kind::kBroadcast);
  EXPECT_EQ(calls[0].bytes, 8);
  EXPECT_EQ(calls[0].peer, 2);
}

TEST_F(Rooted, GatherFillsTheRootsList) {
  std::vector<Tensors> outputs = {{unwritten({2}), unwritten({2}), unwritten({2})}};
  Tensors inputs = {floats({1, 2})};
  stub(3, 0)->gather(outputs, inputs, {.rootRank = 0});
  for (const at::Tensor& output : outputs[0]) EXPECT_TRUE(same(output, floats({1, 2})));
}

TEST_F(Rooted, GatherIsRecordedWithTheGatheredSizeOnEveryMember) {
  std::vector<Tensors> no_outputs;
  Tensors inputs = {floats({1, 2})};
  stub(3, 1)->gather(no_outputs, inputs, {.rootRank = 0});
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].kind, Kind::kGather);
  EXPECT_EQ(calls[0].bytes, 3 * 2 * 4);
  EXPECT_EQ(calls[0].peer, 0);
}

TEST_F(Rooted, ScatterGivesTheRootItsEntry) {
  std::vector<Tensors> inputs = {{floats({1}), floats({2})}};
  Tensors outputs = {unwritten({1})};
  stub(2, 1)->scatter(outputs, inputs, {.rootRank = 1});
  EXPECT_TRUE(same(outputs[0], floats({2})));
}

TEST_F(Rooted, ScatterGivesZerosToOthers) {
  std::vector<Tensors> no_inputs;
  Tensors outputs = {unwritten({3})};
  stub(2, 1)->scatter(outputs, no_inputs, {.rootRank = 0});
  EXPECT_TRUE(same(outputs[0], floats({0, 0, 0})));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].kind, Kind::kScatter);
  EXPECT_EQ(calls[0].bytes, 2 * 3 * 4);
  EXPECT_EQ(calls[0].peer, 0);
}

TEST_F(Rooted, RefuseARootOutsideTheGroup) {
  Tensors tensors = {floats({1})};
  EXPECT_EQ(refusal([&] { stub(4, 0)->broadcast(tensors, {.rootRank = -1}); }),
            "broadcast over the data group (4 ranks): root -1 is not in [0, 4)");
}

TEST_F(Rooted, RefuseAListFromAnyoneButTheRoot) {
  std::vector<Tensors> inputs = {{floats({1}), floats({2})}};
  Tensors outputs = {unwritten({1})};
  EXPECT_EQ(refusal([&] { stub(2, 1)->scatter(outputs, inputs, {.rootRank = 0}); }),
            "scatter over the data group (2 ranks): only the root gives a list, got 1");
}

TEST_F(Rooted, RefuseARootWithoutAnEntryForEachMember) {
  std::vector<Tensors> outputs = {{unwritten({1})}};
  Tensors inputs = {floats({1})};
  EXPECT_EQ(refusal([&] { stub(2, 0)->gather(outputs, inputs, {.rootRank = 0}); }),
            "gather over the data group (2 ranks): expected 2 entries, got 1");
}

TEST_F(Rooted, RefuseEntriesOfAnotherShape) {
  std::vector<Tensors> outputs = {{unwritten({1}), unwritten({2})}};
  Tensors inputs = {floats({1})};
  EXPECT_EQ(refusal([&] { stub(2, 0)->gather(outputs, inputs, {.rootRank = 0}); }),
            "gather over the data group (2 ranks): tensors must have one shape, got [2] and [1]");
}

}  // namespace
}  // namespace comm_stub
