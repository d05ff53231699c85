#include "stub_test.h"

namespace comm_stub {
namespace {

using c10d::ReduceOp;
using Reductions = StubTest;

TEST_F(Reductions, AllReduceSumIsTheTensorTimesTheGroupSize) {
  Tensors tensors = {floats({1, -2, 0.5})};
  const auto work = stub(4, 1)->allreduce(tensors, {});
  EXPECT_TRUE(same(tensors[0], floats({4, -8, 2})));
  EXPECT_TRUE(work->isCompleted());
}

struct OpCase {
  const char* name;
  ReduceOp op;
  int64_t group_size;
  std::vector<int64_t> expected;  // of {0, 1, 2, 5}
};
std::ostream& operator<<(std::ostream& out, const OpCase& c) { return out << c.name; }

class AllReduceOp : public StubTest, public testing::WithParamInterface<OpCase> {};

TEST_P(AllReduceOp, IsThatOfMembersThatHoldTheSame) {
  Tensors tensors = {longs({0, 1, 2, 5})};
  stub(GetParam().group_size, 0)->allreduce(tensors, {.reduceOp = GetParam().op});
  EXPECT_TRUE(same(tensors[0], longs(GetParam().expected)));
}

INSTANTIATE_TEST_SUITE_P(Reductions,
                         AllReduceOp,
                         testing::Values(OpCase{"Sum", ReduceOp::SUM, 3, {0, 3, 6, 15}},
                                         OpCase{"Average", ReduceOp::AVG, 3, {0, 1, 2, 5}},
                                         OpCase{"Product", ReduceOp::PRODUCT, 3, {0, 1, 8, 125}},
                                         OpCase{"Minimum", ReduceOp::MIN, 3, {0, 1, 2, 5}},
                                         OpCase{"Maximum", ReduceOp::MAX, 3, {0, 1, 2, 5}},
                                         OpCase{"And", ReduceOp::BAND, 3, {0, 1, 2, 5}},
                                         OpCase{"Or", ReduceOp::BOR, 3, {0, 1, 2, 5}},
                                         OpCase{"OddXor", ReduceOp::BXOR, 3, {0, 1, 2, 5}},
                                         OpCase{"EvenXor", ReduceOp::BXOR, 4, {0, 0, 0, 0}}),
                         [](const auto& instance) { return instance.param.name; });

TEST_F(Reductions, SumOfBoolIsOrAsInNccl) {
  Tensors tensors = {floats({0, 1}).to(at::kBool)};
  stub(4, 0)->allreduce(tensors, {});
  EXPECT_TRUE(same(tensors[0], floats({0, 1}).to(at::kBool)));
}

TEST_F(Reductions, SumOfBytesWrapsAround) {
  Tensors tensors = {longs({3}).to(at::kByte)};
  stub(1000, 0)->allreduce(tensors, {});
  EXPECT_TRUE(same(tensors[0], longs({3000 % 256}).to(at::kByte)));
}

TEST_F(Reductions, SumOfBf16IsRoundedOnce) {
  Tensors tensors = {floats({1.0078125}).to(at::kBFloat16)};  // 1 + 2^-7, the next after 1
  stub(3, 0)->allreduce(tensors, {});
  EXPECT_TRUE(same(tensors[0], floats({3.03125}).to(at::kBFloat16)));  // of 3.0234375, ties to even
}

TEST_F(Reductions, PremultipliedSumScalesFirst) {
  Tensors tensors = {floats({2})};
  stub(4, 0)->allreduce(tensors, {.reduceOp = c10d::makeNCCLPreMulSum(0.5)});
  EXPECT_TRUE(same(tensors[0], floats({4})));
  stub(4, 0)->allreduce(tensors, {.reduceOp = c10d::makeNCCLPreMulSum(floats({0.25}))});
  EXPECT_TRUE(same(tensors[0], floats({4})));
}

TEST_F(Reductions, AllReduceIsRecordedWithTheWholeBuffer) {
  Tensors tensors = {at::zeros({2, 3}, at::kBFloat16)};
  stub(8, 5)->allreduce(tensors, {.asyncOp = false});
  const estimator::CollectiveCall expected{.kind = Kind::kAllReduce,
                                           .group = estimator::GroupKind::kData,
                                           .group_size = 8,
                                           .dtype = "BFloat16",
                                           .bytes = 2 * 3 * 2,
                                           .peer = -1,
                                           .asynchronous = false};
  EXPECT_EQ(calls, std::vector{expected});
}

TEST_F(Reductions, CoalescedAllReduceIsOneRecordForEachTensor) {
  Tensors tensors = {floats({1}), floats({2, 3})};
  stub(2, 0)->allreduce_coalesced(tensors, {});
  EXPECT_TRUE(same(tensors[0], floats({2})));
  EXPECT_TRUE(same(tensors[1], floats({4, 6})));
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].bytes, 4);
  EXPECT_EQ(calls[1].bytes, 8);
}

TEST_F(Reductions, ReduceChangesTheRootOnly) {
  Tensors at_root = {floats({1, 2})};
  Tensors elsewhere = {floats({1, 2})};
  stub(4, 3)->reduce(at_root, {.rootRank = 3});
  stub(4, 2)->reduce(elsewhere, {.rootRank = 3});
  EXPECT_TRUE(same(at_root[0], floats({4, 8})));
  EXPECT_TRUE(same(elsewhere[0], floats({1, 2})));
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[1].kind, Kind::kReduce);
  EXPECT_EQ(calls[1].peer, 3);
  EXPECT_EQ(calls[1].bytes, 8);
}

TEST_F(Reductions, ReduceScatterIsTheOwnChunkTimesTheGroupSize) {
  at::Tensor input = floats({1, 2, 3, 4, 5, 6});
  at::Tensor output = unwritten({2});
  stub(3, 1)->_reduce_scatter_base(output, input, {});
  EXPECT_TRUE(same(output, floats({9, 12})));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].kind, Kind::kReduceScatter);
  EXPECT_EQ(calls[0].bytes, 6 * 4);
}

TEST_F(Reductions, ReduceScatterWorksInPlace) {
  at::Tensor input = floats({1, 2, 3, 4});
  at::Tensor output = input.narrow(0, 2, 2);
  stub(2, 1)->_reduce_scatter_base(output, input, {});
  EXPECT_TRUE(same(input, floats({1, 2, 6, 8})));
}

TEST_F(Reductions, ReduceScatterOfAListTakesTheOwnEntry) {
  std::vector<Tensors> inputs = {{floats({1}), floats({2}), floats({3})}};
  Tensors outputs = {unwritten({1})};
  stub(3, 2)->reduce_scatter(outputs, inputs, {});
  EXPECT_TRUE(same(outputs[0], floats({9})));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].bytes, 3 * 4);
}

TEST_F(Reductions, ReduceScatterOfAnUnevenListRecordsItsTrueSize) {
  std::vector<Tensors> inputs = {{floats({1, 1, 1}), floats({2})}};
  Tensors outputs = {unwritten({1})};
  stub(2, 1)->reduce_scatter(outputs, inputs, {});
  EXPECT_TRUE(same(outputs[0], floats({4})));
  EXPECT_EQ(calls.at(0).bytes, 4 * 4);
}

TEST_F(Reductions, CoalescedReduceScatterIsOneRecordForEachPair) {
  Tensors inputs = {floats({1, 2}), floats({3, 4, 5, 6})};
  Tensors outputs = {unwritten({1}), unwritten({2})};
  stub(2, 0)->reduce_scatter_tensor_coalesced(outputs, inputs, {});
  EXPECT_TRUE(same(outputs[0], floats({2})));
  EXPECT_TRUE(same(outputs[1], floats({6, 8})));
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].bytes, 8);
  EXPECT_EQ(calls[1].bytes, 16);
}

TEST_F(Reductions, RefuseSparseTensors) {
  Tensors tensors = {floats({1}).to_sparse()};
  EXPECT_EQ(refusal([&] { stub(4, 0)->allreduce(tensors, {}); }),
            "allreduce over the data group (4 ranks): tensors must be dense, got Sparse");
  EXPECT_EQ(refusal([&] { stub(4, 0)->allreduce_sparse(tensors, {}); }),
            "allreduce_sparse over the data group (4 ranks): sparse tensors are not supported; "
            "give dense ones");
}

TEST_F(Reductions, RefuseMoreThanOneTensor) {
  Tensors tensors = {floats({1}), floats({2})};
  EXPECT_EQ(refusal([&] { stub(4, 0)->allreduce(tensors, {}); }),
            "allreduce over the data group (4 ranks): expected 1 tensor, got 2");
}

TEST_F(Reductions, RefuseATypeThatNcclHasNot) {
  Tensors tensors = {longs({1}).to(at::kShort)};
  EXPECT_EQ(refusal([&] { stub(4, 0)->allreduce(tensors, {}); }),
            "allreduce over the data group (4 ranks): dtype Short is not supported by NCCL");
}

TEST_F(Reductions, RefuseATensorWithGaps) {
  Tensors tensors = {at::zeros({4, 4}).narrow(1, 0, 2)};
  EXPECT_EQ(refusal([&] { stub(4, 0)->allreduce(tensors, {}); }),
            "allreduce over the data group (4 ranks): tensors must be contiguous, got sizes "
            "[4, 2] with strides [4, 1]");
}

TEST_F(Reductions, RefuseAnOperationThatTheTypeHasNot) {
  Tensors flags = {floats({1}).to(at::kBool)};
  EXPECT_EQ(refusal([&] { stub(4, 0)->allreduce(flags, {.reduceOp = ReduceOp::AVG}); }),
            "allreduce over the data group (4 ranks): ReduceOp AVG does not support dtype Bool");
  Tensors numbers = {floats({1})};
  EXPECT_EQ(refusal([&] { stub(4, 0)->allreduce(numbers, {.reduceOp = ReduceOp::BOR}); }),
            "allreduce over the data group (4 ranks): ReduceOp BOR does not support dtype Float");
}

TEST_F(Reductions, RefuseBitwiseOperationsAwayFromTheCpu) {
  Tensors tensors = {at::empty({4}, at::TensorOptions(at::kLong).device(at::kMeta))};
  const auto backend = stub(4, 0, {.write_values = false});
  EXPECT_EQ(refusal([&] { backend->allreduce(tensors, {.reduceOp = ReduceOp::BAND}); }),
            "allreduce over the data group (4 ranks): NCCL does not support ReduceOp BAND");
  EXPECT_EQ(refusal([&] { backend->allreduce(tensors, {.reduceOp = ReduceOp::SUM}); }), "");
}

TEST_F(Reductions, RefuseARootOutsideTheGroup) {
  Tensors tensors = {floats({1})};
  EXPECT_EQ(refusal([&] { stub(4, 0)->reduce(tensors, {.rootRank = 4}); }),
            "reduce over the data group (4 ranks): root 4 is not in [0, 4)");
}

TEST_F(Reductions, RefuseTensorsOfTwoTypesInOneCall) {
  Tensors tensors = {floats({1}), longs({1})};
  EXPECT_EQ(refusal([&] { stub(4, 0)->allreduce_coalesced(tensors, {}); }),
            "allreduce_coalesced over the data group (4 ranks): tensors must have one dtype, got "
            "Float and Long");
}

TEST_F(Reductions, RefuseTensorsOnTwoDevices) {
  at::Tensor input = at::empty({4}, at::TensorOptions().device(at::kMeta));
  at::Tensor output = unwritten({1});
  EXPECT_EQ(refusal([&] { stub(4, 0)->_reduce_scatter_base(output, input, {}); }),
            "_reduce_scatter_base over the data group (4 ranks): tensors must be on one device, "
            "got cpu and meta");
}

TEST_F(Reductions, RefuseAnInputThatIsNotOneChunkForEachMember) {
  at::Tensor input = floats({1, 2, 3, 4, 5});
  at::Tensor output = unwritten({1});
  EXPECT_EQ(refusal([&] { stub(4, 0)->_reduce_scatter_base(output, input, {}); }),
            "_reduce_scatter_base over the data group (4 ranks): the gathered tensor must have "
            "4 x 1 elements, got 5");
}

TEST_F(Reductions, RefuseAListOfTheWrongLength) {
  std::vector<Tensors> inputs = {{floats({1}), floats({2})}};
  Tensors outputs = {unwritten({1})};
  EXPECT_EQ(refusal([&] { stub(3, 0)->reduce_scatter(outputs, inputs, {}); }),
            "reduce_scatter over the data group (3 ranks): expected 3 entries, got 2");
}

}  // namespace
}  // namespace comm_stub
