// What the stub allocates and keeps alive: what ProcessGroupNCCL would.
//
// Counted on the CPU, where arithmetic with a scalar allocates the scalar: so mostly without
// values.
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "stub_test.h"

namespace comm_stub {
namespace {

/// Counts what the CPU allocator hands out on this thread.
class AllocationCounter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t alloc_size, size_t, size_t, c10::Device) override {
    live_bytes += alloc_size;
    if (alloc_size > 0) allocated_bytes += alloc_size;
  }
  bool memoryProfilingEnabled() const override { return true; }

  int64_t live_bytes = 0;
  int64_t allocated_bytes = 0;
};

/// Handles of the tensor, the test's own included.
size_t owners(const at::Tensor& tensor) { return tensor.use_count(); }

class Memory : public StubTest {
 protected:
  std::shared_ptr<AllocationCounter> counter = std::make_shared<AllocationCounter>();
};

TEST_F(Memory, CallsOnWholeTensorsAllocateNothing) {
  const auto backend = stub(4, 1, {.write_values = false});
  Tensors tensors = {at::zeros({64})};
  at::Tensor small = at::zeros({16});
  std::vector<int64_t> splits;
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  backend->allreduce(tensors, {});
  backend->broadcast(tensors, {});
  backend->_allgather_base(tensors[0], small, {});
  backend->_reduce_scatter_base(small, tensors[0], {});
  backend->alltoall_base(tensors[0], tensors[0], splits, splits, {});
  backend->send(tensors, 0, 0);
  backend->recv(tensors, 0, 0);
  backend->barrier({});
  EXPECT_EQ(counter->allocated_bytes, 0);
}

TEST_F(Memory, AnEvenListIsGatheredThroughOneBuffer) {
  std::vector<Tensors> outputs = {{at::zeros({64}), at::zeros({64})}};
  Tensors inputs = {at::zeros({64})};
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  auto work = stub(2, 1)->allgather(outputs, inputs, {.asyncOp = true});
  work->wait();
  EXPECT_EQ(counter->live_bytes, 2 * 64 * 4) << "the buffer belongs to the Work";
  work.reset();
  EXPECT_EQ(counter->live_bytes, 0);
}

TEST_F(Memory, AnEvenListIsScatteredThroughOneBufferUntilWait) {
  std::vector<Tensors> inputs = {{at::zeros({64}), at::zeros({64})}};
  Tensors outputs = {at::zeros({64})};
  const auto backend = stub(2, 1, {.write_values = false});
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  const auto work = backend->reduce_scatter(outputs, inputs, {.asyncOp = true});
  EXPECT_EQ(counter->live_bytes, 2 * 64 * 4);
  EXPECT_EQ(owners(inputs[0][0]), 2u) << "the list is held as well";
  work->wait();
  EXPECT_EQ(counter->live_bytes, 0);
  EXPECT_EQ(owners(inputs[0][0]), 1u);
}

TEST_F(Memory, ASynchronousListKeepsNoBuffer) {
  std::vector<Tensors> inputs = {{at::zeros({64}), at::zeros({64})}};
  Tensors outputs = {at::zeros({64})};
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  const auto backend = stub(2, 1, {.write_values = false});
  const auto work = backend->reduce_scatter(outputs, inputs, {.asyncOp = false});
  EXPECT_EQ(counter->allocated_bytes, 2 * 64 * 4);
  EXPECT_EQ(counter->live_bytes, 0);
}

TEST_F(Memory, AnUnevenListNeedsNoBuffer) {
  std::vector<Tensors> outputs = {{at::zeros({64}), at::zeros({32})}};
  Tensors inputs = {at::zeros({64})};
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  stub(2, 0)->allgather(outputs, inputs, {});
  EXPECT_EQ(counter->allocated_bytes, 0);
}

TEST_F(Memory, ABarrierOnADeviceAllocatesOneFloat) {
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  auto work = stub(2, 0)->barrier({.device = at::Device(at::kCPU)});
  work->wait();
  EXPECT_EQ(counter->live_bytes, 4);
  work.reset();
  EXPECT_EQ(counter->live_bytes, 0);
}

TEST_F(Memory, BuffersAreTheSameWithoutValues) {
  std::vector<Tensors> outputs = {{at::zeros({64}), at::zeros({64})}};
  Tensors inputs = {at::zeros({64})};
  const auto backend = stub(2, 1, {.write_values = false});
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  backend->allgather(outputs, inputs, {});
  EXPECT_EQ(counter->allocated_bytes, 2 * 64 * 4);
}

TEST_F(Memory, AnAsynchronousCallKeepsItsInputUntilWait) {
  at::Tensor input = at::zeros({4}), output = at::zeros({8});
  const auto work = stub(2, 0)->_allgather_base(output, input, {.asyncOp = true});
  EXPECT_EQ(owners(input), 2u);
  work->wait();
  EXPECT_EQ(owners(input), 1u);
}

TEST_F(Memory, ASynchronousCallKeepsNoInput) {
  at::Tensor input = at::zeros({4}), output = at::zeros({8});
  const auto work = stub(2, 0)->_allgather_base(output, input, {.asyncOp = false});
  EXPECT_EQ(owners(input), 1u);
}

TEST_F(Memory, TheRootsListOfAScatterIsKeptWithTheWork) {
  std::vector<Tensors> inputs = {{at::zeros({4}), at::zeros({4})}};
  Tensors outputs = {at::zeros({4})};
  auto work = stub(2, 0)->scatter(outputs, inputs, {.rootRank = 0, .asyncOp = true});
  work->wait();
  EXPECT_EQ(owners(inputs[0][1]), 2u);
  work.reset();
  EXPECT_EQ(owners(inputs[0][1]), 1u);
}

TEST_F(Memory, ABatchHoldsItsCollectivesUntilItsOwnWait) {
  at::Tensor input = at::zeros({4}), output = at::zeros({8});
  const auto backend = stub(2, 0);
  backend->startCoalescing();
  backend->_allgather_base(output, input, {.asyncOp = true});
  const auto work = backend->endCoalescing();
  EXPECT_EQ(owners(input), 2u);
  EXPECT_EQ(owners(output), 2u);
  work->wait();
  EXPECT_EQ(owners(input), 1u);
  EXPECT_EQ(owners(output), 1u);
}

TEST_F(Memory, ABatchHoldsNoMessages) {
  Tensors message = {at::zeros({4})};
  const auto backend = stub(2, 0);
  backend->startCoalescing();
  backend->send(message, 1, 0);
  const auto work = backend->endCoalescing();
  EXPECT_EQ(owners(message[0]), 1u);
}

}  // namespace
}  // namespace comm_stub
