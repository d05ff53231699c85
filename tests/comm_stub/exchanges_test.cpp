#include "stub_test.h"

namespace comm_stub {
namespace {

using Exchanges = StubTest;
using Splits = std::vector<int64_t>;

class AllToAll : public StubTest {
 protected:
  /// What member `member_index` of `size` gets into `output_rows` elements for {1, 2, 3, 4, 5, 6}.
  at::Tensor exchanged(int64_t size,
                       int64_t member_index,
                       int64_t output_rows,
                       Splits output_splits,
                       Splits input_splits) {
    at::Tensor input = floats({1, 2, 3, 4, 5, 6});
    at::Tensor output = unwritten({output_rows});
    stub(size, member_index)->alltoall_base(output, input, output_splits, input_splits, {});
    return output;
  }
};

TEST_F(AllToAll, EveryMemberSendsWhatThisOneHasForItself) {
  EXPECT_TRUE(same(exchanged(3, 1, 6, {}, {}), floats({3, 4, 3, 4, 3, 4})));
}

TEST_F(AllToAll, SplitSizesCutBothSides) {
  EXPECT_TRUE(same(exchanged(3, 2, 6, {2, 2, 2}, {1, 3, 2}), floats({5, 6, 5, 6, 5, 6})));
}

TEST_F(AllToAll, SlotsOfOtherSizesGetWhatFitsThenZeros) {
  EXPECT_TRUE(same(exchanged(2, 1, 5, {1, 4}, {4, 2}), floats({5, 5, 6, 0, 0})));
  EXPECT_TRUE(same(exchanged(2, 0, 6, {}, {2, 4}), floats({1, 2, 0, 1, 2, 0})));
  EXPECT_TRUE(same(exchanged(2, 0, 2, {}, {2, 4}), floats({1, 1})));
}

TEST_F(AllToAll, SplitSizesMayBeZero) {
  EXPECT_TRUE(same(exchanged(2, 0, 1, {0, 1}, {0, 6}), floats({0})));
}

TEST_F(AllToAll, SplitsAreRowsOfTheFirstDimension) {
  at::Tensor input = at::arange(6, at::kFloat).view({3, 2});
  at::Tensor output = unwritten({4, 2});
  Splits output_splits = {2, 2}, input_splits = {1, 2};
  stub(2, 1)->alltoall_base(output, input, output_splits, input_splits, {});
  EXPECT_TRUE(same(output, floats({2, 3, 4, 5, 2, 3, 4, 5}).view({4, 2})));
}

TEST_F(AllToAll, IsRecordedWithTheBytesSent) {
  exchanged(2, 0, 2, {1, 1}, {1, 5});
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].kind, Kind::kAllToAll);
  EXPECT_EQ(calls[0].bytes, 6 * 4);
}

TEST_F(AllToAll, OfListsExchangesEntries) {
  Tensors inputs = {floats({1}), floats({2, 3})};
  Tensors outputs = {unwritten({2}), unwritten({2})};
  stub(2, 1)->alltoall(outputs, inputs, {});
  EXPECT_TRUE(same(outputs[0], floats({2, 3})));
  EXPECT_TRUE(same(outputs[1], floats({2, 3})));
  EXPECT_EQ(calls.at(0).bytes, 3 * 4);
}

TEST_F(AllToAll, RefusesRowsThatDoNotSplitEvenly) {
  EXPECT_EQ(refusal([&] { exchanged(4, 0, 4, {}, {}); }),
            "alltoall_base over the data group (4 ranks): 6 rows do not split evenly");
}

TEST_F(AllToAll, RefusesSplitSizesThatAreNotTheTensors) {
  EXPECT_EQ(refusal([&] {
              exchanged(2, 0, 2, {}, {1, 2});
            }),
            "alltoall_base over the data group (2 ranks): split sizes add up to 3, the tensor has "
            "6 rows");
  EXPECT_EQ(refusal([&] { exchanged(2, 0, 2, {}, {6}); }),
            "alltoall_base over the data group (2 ranks): expected 2 split sizes, got 1");
  EXPECT_EQ(refusal([&] {
              exchanged(2, 0, 2, {}, {7, -1});
            }),
            "alltoall_base over the data group (2 ranks): split size -1 is negative");
}

TEST_F(AllToAll, RefusesListsThatAreNotOneEntryForEachMember) {
  Tensors inputs = {floats({1})};
  Tensors outputs = {unwritten({1}), unwritten({1})};
  EXPECT_EQ(refusal([&] { stub(2, 0)->alltoall(outputs, inputs, {}); }),
            "alltoall over the data group (2 ranks): expected 2 inputs, got 1");
}

TEST_F(Exchanges, SendChangesNothing) {
  Tensors tensors = {floats({1, 2})};
  stub(4, 1)->send(tensors, 2, 0);
  EXPECT_TRUE(same(tensors[0], floats({1, 2})));
  const estimator::CollectiveCall expected{.kind = Kind::kSend,
                                           .group = estimator::GroupKind::kData,
                                           .group_size = 4,
                                           .dtype = "Float",
                                           .bytes = 8,
                                           .peer = 2,
                                           .asynchronous = true};
  EXPECT_EQ(calls, std::vector{expected});
}

TEST_F(Exchanges, RecvGivesZeros) {
  Tensors tensors = {unwritten({2})};
  stub(4, 1)->recv(tensors, 0, 0);
  EXPECT_TRUE(same(tensors[0], floats({0, 0})));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].kind, Kind::kRecv);
  EXPECT_EQ(calls[0].peer, 0);
}

TEST_F(Exchanges, RecvFromAnyoneNamesTheFirstOtherMember) {
  Tensors tensors = {unwritten({2})};
  EXPECT_EQ(stub(4, 0)->recvAnysource(tensors, 0)->sourceRank(), 1);
  EXPECT_EQ(stub(4, 3)->recvAnysource(tensors, 0)->sourceRank(), 0);
  EXPECT_TRUE(same(tensors[0], floats({0, 0})));
}

TEST_F(Exchanges, MessagesMayBeTransposedButWithoutGaps) {
  Tensors transposed = {at::zeros({2, 3}).t()};
  EXPECT_EQ(refusal([&] { stub(2, 0)->send(transposed, 1, 0); }), "");
  Tensors with_gaps = {at::zeros({4, 4}).narrow(1, 0, 2)};
  EXPECT_EQ(refusal([&] { stub(2, 0)->send(with_gaps, 1, 0); }),
            "send over the data group (2 ranks): tensors must be non-overlapping and dense, got "
            "sizes [4, 2] with strides [4, 1]");
}

TEST_F(Exchanges, RefuseAPeerOutsideTheGroup) {
  Tensors tensors = {floats({1})};
  EXPECT_EQ(refusal([&] { stub(2, 0)->send(tensors, 2, 0); }),
            "send over the data group (2 ranks): destination 2 is not in [0, 2)");
  EXPECT_EQ(refusal([&] { stub(2, 0)->recv(tensors, -1, 0); }),
            "recv over the data group (2 ranks): source -1 is not in [0, 2)");
}

TEST_F(Exchanges, RefuseToSendToOneselfOutsideABatch) {
  Tensors tensors = {floats({1})};
  const auto backend = stub(2, 0);
  EXPECT_EQ(refusal([&] { backend->send(tensors, 0, 0); }),
            "send over the data group (2 ranks): destination 0 is this rank itself");
  backend->startCoalescing();
  EXPECT_EQ(refusal([&] { backend->send(tensors, 0, 0); }), "");
}

TEST_F(Exchanges, ABatchIsRecordedCallByCall) {
  Tensors sent = {floats({1})}, received = {unwritten({1})};
  const auto backend = stub(2, 0);
  backend->startCoalescing();
  backend->send(sent, 1, 0);
  backend->recv(received, 1, 0);
  const auto work = backend->endCoalescing();
  EXPECT_TRUE(work->wait());
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].kind, Kind::kSend);
  EXPECT_EQ(calls[1].kind, Kind::kRecv);
}

TEST_F(Exchanges, AnEmptyBatchHasNoWork) {
  const auto backend = stub(2, 0);
  backend->startCoalescing();
  EXPECT_EQ(backend->endCoalescing(), nullptr);
}

TEST_F(Exchanges, RefuseToEndABatchThatWasNotStarted) {
  EXPECT_EQ(refusal([&] { stub(2, 0)->endCoalescing(); }),
            "endCoalescing over the data group (2 ranks): called without startCoalescing");
}

}  // namespace
}  // namespace comm_stub
