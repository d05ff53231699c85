#include "stub_test.h"

namespace comm_stub {
namespace {

using Gathers = StubTest;

TEST_F(Gathers, AllGatherPutsTheOwnShardInEverySlot) {
  at::Tensor input = floats({1, 2});
  at::Tensor output = unwritten({6});
  stub(3, 2)->_allgather_base(output, input, {});
  EXPECT_TRUE(same(output, floats({1, 2, 1, 2, 1, 2})));
}

TEST_F(Gathers, AllGatherIsRecordedWithTheGatheredSize) {
  at::Tensor input = longs({1, 2});
  at::Tensor output = unwritten({6}, at::kLong);
  stub(3, 0)->_allgather_base(output, input, {.asyncOp = false});
  const estimator::CollectiveCall expected{.kind = Kind::kAllGather,
                                           .group = estimator::GroupKind::kData,
                                           .group_size = 3,
                                           .dtype = "Long",
                                           .bytes = 3 * 2 * 8,
                                           .peer = -1,
                                           .asynchronous = false};
  EXPECT_EQ(calls, std::vector{expected});
}

TEST_F(Gathers, AllGatherWorksInPlace) {
  at::Tensor output = floats({1, 2, 3, 4});
  at::Tensor input = output.narrow(0, 2, 2);
  stub(2, 1)->_allgather_base(output, input, {});
  EXPECT_TRUE(same(output, floats({3, 4, 3, 4})));
}

TEST_F(Gathers, AllGatherOfNothingIsNothing) {
  at::Tensor input = floats({});
  at::Tensor output = floats({});
  stub(2, 1)->_allgather_base(output, input, {});
  EXPECT_EQ(calls.at(0).bytes, 0);
}

TEST_F(Gathers, AllGatherMovesMemoryOrderWhateverTheShape) {
  at::Tensor input =
      at::arange(8, at::kFloat).view({1, 2, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor output = unwritten({2, 2, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast);
  stub(2, 0)->_allgather_base(output, input, {});
  EXPECT_TRUE(same(output.select(0, 1), input.select(0, 0)));
}

TEST_F(Gathers, AllGatherFillsAList) {
  std::vector<Tensors> outputs = {{unwritten({2}), unwritten({2})}};
  Tensors inputs = {floats({1, 2})};
  stub(2, 1)->allgather(outputs, inputs, {});
  EXPECT_TRUE(same(outputs[0][0], floats({1, 2})));
  EXPECT_TRUE(same(outputs[0][1], floats({1, 2})));
  EXPECT_EQ(calls.at(0).bytes, 2 * 2 * 4);
}

TEST_F(Gathers, AllGatherFillsColumnsOfOneTensor) {
  at::Tensor whole = unwritten({2, 4});
  std::vector<Tensors> outputs = {{whole.narrow(1, 0, 2), whole.narrow(1, 2, 2)}};
  Tensors inputs = {floats({1, 2, 3, 4}).view({2, 2})};
  stub(2, 1)->allgather(outputs, inputs, {});
  EXPECT_TRUE(same(whole, floats({1, 2, 1, 2, 3, 4, 3, 4}).view({2, 4})));
}

TEST_F(Gathers, AllGatherIntoAnUnevenListWritesWhatFitsThenZeros) {
  std::vector<Tensors> outputs = {{unwritten({1}), unwritten({2}), unwritten({4})}};
  Tensors inputs = {floats({1, 2})};
  stub(3, 1)->allgather(outputs, inputs, {});
  EXPECT_TRUE(same(outputs[0][0], floats({1})));
  EXPECT_TRUE(same(outputs[0][1], floats({1, 2})));
  EXPECT_TRUE(same(outputs[0][2], floats({1, 2, 0, 0})));
  EXPECT_EQ(calls.at(0).bytes, 7 * 4);
}

TEST_F(Gathers, CoalescedAllGatherIsOneRecordForEachPair) {
  Tensors inputs = {floats({1}), floats({2, 3})};
  Tensors outputs = {unwritten({2}), unwritten({4})};
  stub(2, 0)->allgather_into_tensor_coalesced(outputs, inputs, {});
  EXPECT_TRUE(same(outputs[0], floats({1, 1})));
  EXPECT_TRUE(same(outputs[1], floats({2, 3, 2, 3})));
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].bytes, 8);
  EXPECT_EQ(calls[1].bytes, 16);
}

// TransformerEngine gathers fp32 scales and 8-bit elements so.
TEST_F(Gathers, CoalescedAllGatherTakesSeveralTypes) {
  Tensors inputs = {floats({1}), at::ones({3}, at::kByte)};
  Tensors outputs = {unwritten({2}), unwritten({6}, at::kByte)};
  stub(2, 0)->allgather_into_tensor_coalesced(outputs, inputs, {});
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].dtype, "Float");
  EXPECT_EQ(calls[1].dtype, "Byte");
}

TEST_F(Gathers, CoalescedAllGatherOfListsFillsEveryMembersList) {
  Tensors inputs = {floats({1}), floats({2, 3})};
  std::vector<Tensors> outputs = {{unwritten({1}), unwritten({2})},
                                  {unwritten({1}), unwritten({2})}};
  stub(2, 0)->allgather_coalesced(outputs, inputs, {});
  for (const Tensors& of_member : outputs) {
    EXPECT_TRUE(same(of_member[0], floats({1})));
    EXPECT_TRUE(same(of_member[1], floats({2, 3})));
  }
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[1].bytes, 2 * 2 * 4);
}

TEST_F(Gathers, CoalescedAllGatherOfListsIsRefusedAwayFromTheCpu) {
  Tensors inputs = {at::empty({1}, at::TensorOptions().device(at::kMeta))};
  std::vector<Tensors> outputs = {inputs, inputs};
  EXPECT_EQ(refusal([&] { stub(2, 0)->allgather_coalesced(outputs, inputs, {}); }),
            "allgather_coalesced over the data group (2 ranks): NCCL does not support this call");
}

TEST_F(Gathers, RefuseAnOutputOfTheWrongSize) {
  at::Tensor input = floats({1, 2});
  at::Tensor output = unwritten({7});
  EXPECT_EQ(refusal([&] { stub(4, 0)->_allgather_base(output, input, {}); }),
            "_allgather_base over the data group (4 ranks): the gathered tensor must have 4 x 2 "
            "elements, got 7");
  EXPECT_TRUE(same(output, unwritten({7})));
}

TEST_F(Gathers, RefuseAnOutputOfAnotherType) {
  at::Tensor input = floats({1});
  at::Tensor output = unwritten({4}, at::kHalf);
  EXPECT_EQ(refusal([&] { stub(4, 0)->_allgather_base(output, input, {}); }),
            "_allgather_base over the data group (4 ranks): tensors must have one dtype, got Half "
            "and Float");
}

TEST_F(Gathers, RefuseAnOwnEntryThatIsNotTheShard) {
  std::vector<Tensors> outputs = {{unwritten({2}), unwritten({3})}};
  Tensors inputs = {floats({1, 2})};
  EXPECT_EQ(refusal([&] { stub(2, 1)->allgather(outputs, inputs, {}); }),
            "allgather over the data group (2 ranks): entry 1 must have 2 elements, got 3");
}

TEST_F(Gathers, RefuseMoreOutputsThanInputs) {
  Tensors inputs = {floats({1})};
  Tensors outputs = {unwritten({2}), unwritten({2})};
  EXPECT_EQ(refusal([&] { stub(2, 0)->allgather_into_tensor_coalesced(outputs, inputs, {}); }),
            "allgather_into_tensor_coalesced over the data group (2 ranks): expected 1 outputs, "
            "one for each input, got 2");
}

TEST_F(Gathers, RefuseComplexTensorsWithTheWayOut) {
  at::Tensor input = floats({1}).to(at::kComplexFloat);
  at::Tensor output = unwritten({2}).to(at::kComplexFloat);
  EXPECT_EQ(refusal([&] { stub(2, 0)->_allgather_base(output, input, {}); }),
            "_allgather_base over the data group (2 ranks): dtype ComplexFloat is not supported by "
            "NCCL; give the tensor as view_as_real()");
}

}  // namespace
}  // namespace comm_stub
