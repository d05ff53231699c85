#include <ATen/record_function.h>

#include <limits>
#include <stdexcept>

#include "comm_stub/stub_backend.h"
#include "stub_test.h"

namespace comm_stub {
namespace {

using StubBackendTest = StubTest;
using estimator::GroupKind;

TEST_F(StubBackendTest, IsNamedStubAndKnowsItsPlace) {
  const auto backend = stub(6, 4);
  EXPECT_EQ(backend->getBackendName(), "stub");
  EXPECT_EQ(backend->getRank(), 4);
  EXPECT_EQ(backend->getSize(), 6);
  EXPECT_EQ(backend->getBackendOptions()->group_name, "data");
}

TEST_F(StubBackendTest, WorkIsCompleteWhenTheCallReturns) {
  Tensors tensors = {floats({1})};
  const auto work = stub(2, 0)->allreduce(tensors, {});
  EXPECT_TRUE(work->isCompleted());
  EXPECT_TRUE(work->isSuccess());
  EXPECT_TRUE(work->wait());
  EXPECT_EQ(work->retrieveOpType(), c10d::OpType::ALLREDUCE);
}

TEST_F(StubBackendTest, FutureIsCompleteAndHoldsTheOutputs) {
  Tensors tensors = {floats({1})};
  const auto work = stub(2, 0)->allreduce(tensors, {});
  const auto future = work->getFuture();
  ASSERT_TRUE(future->completed());
  EXPECT_TRUE(future->value().toTensorVector().at(0).is_same(tensors[0]));
  EXPECT_TRUE(work->getFutureResult()->completed());
}

TEST_F(StubBackendTest, BarrierIsRecordedWithoutBytes) {
  EXPECT_TRUE(stub(4, 1)->barrier({})->wait());
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].kind, Kind::kBarrier);
  EXPECT_EQ(calls[0].bytes, 0);
  EXPECT_EQ(calls[0].group_size, 4);
}

TEST_F(StubBackendTest, CountsItsCalls) {
  Tensors tensors = {floats({1})};
  const auto backend = stub(2, 0);
  backend->allreduce(tensors, {});
  backend->barrier({});
  EXPECT_EQ(backend->getSequenceNumberForGroup(), 2u);
}

TEST_F(StubBackendTest, WithoutValuesOutputsStayAsTheyAre) {
  const auto backend = stub(2, 1, {.write_values = false});
  Tensors tensors = {floats({1, 2})};
  at::Tensor output = unwritten({4});
  backend->allreduce(tensors, {});
  backend->broadcast(tensors, {});
  backend->recv(tensors, 0, 0);
  backend->_allgather_base(output, tensors[0], {});
  EXPECT_TRUE(same(tensors[0], floats({1, 2})));
  EXPECT_TRUE(same(output, unwritten({4})));
  EXPECT_EQ(calls.size(), 4u);
}

TEST_F(StubBackendTest, ChecksTensorsWithoutMemoryToo) {
  const auto options = at::TensorOptions().device(at::kMeta);
  at::Tensor input = at::empty({1 << 20, 1 << 20}, options);
  at::Tensor output = at::empty({1 << 10, 1 << 20}, options);
  const auto backend = stub(1 << 10, 0, {.write_values = false});
  backend->_reduce_scatter_base(output, input, {});
  EXPECT_EQ(calls.at(0).bytes, int64_t{4} << 40);
  EXPECT_NE(refusal([&] { backend->_allgather_base(output, input, {}); }), "");
}

TEST_F(StubBackendTest, ValuesAreWrittenOutsideTheAutogradGraph) {
  at::Tensor parameter = floats({1, 2});
  parameter.set_requires_grad(true);
  const int64_t version = parameter._version();
  Tensors tensors = {parameter};
  stub(2, 0)->allreduce(tensors, {});
  EXPECT_TRUE(parameter.is_leaf());
  EXPECT_EQ(parameter._version(), version);
  EXPECT_TRUE(same(parameter.detach(), floats({2, 4})));
}

TEST_F(StubBackendTest, OperatorTrackersSeeNothingOfIt) {
  static int operators_seen = 0;  // the callback is a plain function
  operators_seen = 0;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(
      [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
        ++operators_seen;
        return nullptr;
      }));
  Tensors tensors = {floats({1})};
  std::vector<Tensors> outputs = {{floats({1}), floats({1})}};
  operators_seen = 0;
  const auto backend = stub(2, 0);
  backend->allreduce(tensors, {});
  backend->allgather(outputs, tensors, {});
  EXPECT_EQ(operators_seen, 0);
  tensors[0].zero_();
  EXPECT_GT(operators_seen, 0) << "the tracker does not work";
  at::removeCallback(handle);
}

TEST_F(StubBackendTest, SaysWhenItWritesValues) {
  std::vector<std::string> log;
  StubOptions options;
  options.on_writing = [&](bool writing) { log.push_back(writing ? "begin" : "end"); };
  Tensors tensors = {floats({1})};
  const auto backend = stub(2, 0, options);
  backend->barrier({});
  EXPECT_TRUE(log.empty());
  backend->allreduce(tensors, {});
  EXPECT_EQ(log, (std::vector<std::string>{"begin", "end"}));
}

TEST_F(StubBackendTest, AGroupOfAMillionCostsAsMuchAsOneOfTwo) {
  const auto backend = stub(1'000'000, 999'999);
  Tensors tensors = {floats({1})};
  at::Tensor input = floats({3}), output = unwritten({1'000'000});
  std::vector<int64_t> splits;
  backend->allreduce(tensors, {});
  backend->_allgather_base(output, input, {});
  backend->alltoall_base(output, output, splits, splits, {});
  EXPECT_TRUE(same(tensors[0], floats({1e6})));
  EXPECT_EQ(output.sum(at::kDouble).item<double>(), 3e6);
  EXPECT_EQ(calls.at(1).bytes, 4'000'000);
}

TEST_F(StubBackendTest, ThereIsNoStubOfAStranger) {
  EXPECT_THROW(stub(4, 4), std::logic_error);
  EXPECT_THROW(stub(4, -1), std::logic_error);
  EXPECT_THROW(stub(int64_t{1} << 31, 0), std::logic_error);
}

/// 2 tensor x 1 context x 3 data x 4 pipeline ranks.
estimator::ParallelLayout layout_of_24() {
  return estimator::ParallelLayout({.tensor = 2, .pipeline = 4, .expert_tensor = 1, .data = 3});
}

TEST_F(StubBackendTest, GroupsOfARankAreThoseItSharesWithOthers) {
  const int64_t rank = 3;  // tensor 1, data 1, stage 0
  const StubGroups groups = make_stub_groups(layout_of_24(),
                                             rank,
                                             {GroupKind::kWorld,
                                              GroupKind::kTensor,
                                              GroupKind::kContext,
                                              GroupKind::kData,
                                              GroupKind::kPipeline,
                                              GroupKind::kEmbedding},
                                             [](const auto&) {});
  const auto place = [&](GroupKind kind) {
    return std::pair(groups.at(kind)->getRank(), groups.at(kind)->getSize());
  };
  EXPECT_EQ(place(GroupKind::kWorld), std::pair(3, 24));
  EXPECT_EQ(place(GroupKind::kTensor), std::pair(1, 2));
  EXPECT_EQ(place(GroupKind::kData), std::pair(1, 3));
  EXPECT_EQ(place(GroupKind::kPipeline), std::pair(0, 4));
  EXPECT_EQ(place(GroupKind::kEmbedding), std::pair(0, 2));
  EXPECT_FALSE(groups.contains(GroupKind::kContext)) << "a group of one costs nothing";
}

TEST_F(StubBackendTest, AMiddleStageHasNoEmbeddingGroup) {
  const int64_t rank = 9;  // stage 1
  EXPECT_TRUE(
      make_stub_groups(layout_of_24(), rank, {GroupKind::kEmbedding}, [](const auto&) {}).empty());
}

}  // namespace
}  // namespace comm_stub
