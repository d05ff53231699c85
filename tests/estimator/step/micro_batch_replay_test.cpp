#include "estimator/step/micro_batch_replay.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

/// The order of a rank, and the prices of what is in it. Each work has a record of its own.
class Order {
 public:
  void kernel(double seconds, int64_t stream = kMainStream, double issue_seconds = 0) {
    records_.operators.push_back(RecordPrice{.price = {.seconds = seconds}});
    records_.operators.back()->issue_seconds = issue_seconds;
    add(OrderKind::kOperator, stream, static_cast<int64_t>(records_.operators.size()) - 1);
  }
  void host_reads(double issue_seconds) {
    kernel(0, kMainStream, issue_seconds);
    records_.operators.back()->host_waits = true;
  }
  RecordPrice& call(GroupKind group, double seconds, int64_t stream = kMainStream) {
    records_.collectives.push_back(RecordPrice{
        .price = {.seconds = seconds, .work_class = WorkClass::kCommunication}, .group = group});
    add(OrderKind::kCollective, stream, static_cast<int64_t>(records_.collectives.size()) - 1);
    return *records_.collectives.back();
  }
  int64_t record(int64_t stream) {
    add(OrderKind::kRecord, stream, order_.records);
    return order_.records++;
  }
  void wait(int64_t stream, int64_t record) { add(OrderKind::kWait, stream, record); }

  /// On `stream`, as soon as the main stream is there; the record at its end.
  int64_t start(GroupKind group, double seconds, int64_t stream, const PortUse& ports = {}) {
    wait(stream, record(kMainStream));
    call(group, seconds, stream).price.occupancy.ports = ports;
    return record(stream);
  }

  MicroBatchTime time(int64_t of_chunk = 0, const HostWaits& waits = {}) const {
    return replay_micro_batch(order_, records_, of_chunk, waits);
  }

  Direction direction = Direction::kForward;
  int64_t chunk = 0;

 private:
  void add(OrderKind kind, int64_t stream, int64_t item) {
    order_.events.kind.push_back(static_cast<int64_t>(kind));
    order_.events.stream.push_back(stream);
    order_.events.item.push_back(item);
    order_.events.module.push_back(0);
    order_.events.chunk.push_back(chunk);
    order_.events.direction.push_back(static_cast<int64_t>(direction));
  }

  StepOrder order_{.modules = {""}, .events = {}};
  PricedRecords records_;
};

constexpr double kExact = 1e-9;

TEST(MicroBatchReplay, OfOneStreamIsTheSumOfItsWorks) {
  Order order;
  order.kernel(1);
  order.call(GroupKind::kTensor, 0.5);
  order.kernel(2);
  order.direction = Direction::kBackward;
  order.kernel(4);
  order.direction = Direction::kRecompute;
  order.call(GroupKind::kExpert, 0.25);
  const MicroBatchTime time = order.time();
  EXPECT_NEAR(time.forward.compute_seconds, 3, kExact);
  EXPECT_NEAR(time.forward.communication_seconds.tensor, 0.5, kExact);
  EXPECT_NEAR(time.backward.compute_seconds, 4, kExact);
  EXPECT_NEAR(time.backward.communication_seconds.expert, 0.25, kExact);
}

TEST(MicroBatchReplay, HidesACallBesideTheKernelsThatDoNotWaitForIt) {
  for (const double seconds : {1.0, 3.0}) {
    Order order;
    order.kernel(1);
    const int64_t gathered = order.start(GroupKind::kDataContext, seconds, 1);
    order.kernel(2);
    order.wait(kMainStream, gathered);
    order.kernel(1);
    const PartTime forward = order.time().forward;
    EXPECT_NEAR(forward.compute_seconds, 4, kExact);
    EXPECT_NEAR(forward.communication_seconds.data, seconds > 2 ? seconds - 2 : 0, kExact);
  }
}

// A ring passes keys on beside attention. The receive takes as long as the send.
TEST(MicroBatchReplay, SendsAndReceivesAtTheSameTime) {
  Order order;
  const int64_t sent = order.start(GroupKind::kContext, 3, 1);
  order.wait(2, order.record(kMainStream));
  order.call(GroupKind::kContext, 3, 2).is_message = true;
  const int64_t received = order.record(2);
  order.kernel(2);
  order.wait(kMainStream, sent);
  order.wait(kMainStream, received);
  order.kernel(2);
  const PartTime forward = order.time().forward;
  EXPECT_NEAR(forward.compute_seconds, 4, kExact);
  EXPECT_NEAR(forward.communication_seconds.context, 1, kExact);
}

TEST(MicroBatchReplay, SharesPortsBetweenCallsOfTwoStreams) {
  Order order;
  const int64_t gathered = order.start(GroupKind::kDataContext, 1, 1, {.link = 1});
  order.call(GroupKind::kTensor, 1).price.occupancy.ports = {.link = 1};
  order.wait(kMainStream, gathered);
  order.kernel(1);
  const PartTime forward = order.time().forward;
  EXPECT_NEAR(forward.compute_seconds, 1, kExact);
  EXPECT_NEAR(sum_of(forward.communication_seconds), 2, kExact);
}

TEST(MicroBatchReplay, WaitsForARecordOfTheMicroBatchBefore) {
  Order order;
  order.wait(1, -1);  // the only record
  order.call(GroupKind::kDataContext, 1, 1);
  order.kernel(1);
  order.record(kMainStream);
  order.wait(kMainStream, 0);
  EXPECT_NEAR(order.time().forward.compute_seconds, 1, kExact);
}

TEST(MicroBatchReplay, CountsTheHostWhereItIsSlowerThanTheGpu) {
  Order order;
  for (int i = 0; i < 10; ++i) order.kernel(1e-3, kMainStream, 3e-3);
  order.direction = Direction::kBackward;
  order.kernel(5e-3, kMainStream, 1e-3);
  const MicroBatchTime time = order.time();
  EXPECT_NEAR(time.forward.total_seconds() + time.backward.total_seconds(), 31e-3, kExact);
}

// The host learns the value 1 s after the GPU has it, and needs 2 s for the next kernel.
TEST(MicroBatchReplay, LeavesTheGpuIdleAfterTheHostHasReadAValue) {
  Order order;
  order.kernel(10, kMainStream, 2);
  order.host_reads(0);
  EXPECT_NEAR(order.time(0, {.seconds = 1}).forward.compute_seconds, 13, kExact);
}

// The host is 1 s ahead of the GPU within a part, but not beyond its end.
TEST(MicroBatchReplay, StartsEachPartWithAnIdleGpuWhereSendsSynchronize) {
  const auto seconds = [](const HostWaits& waits) {
    Order order;
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      order.direction = direction;
      order.kernel(2, kMainStream, 1);
      order.kernel(2, kMainStream, 1);
    }
    const MicroBatchTime time = order.time(0, waits);
    return time.forward.total_seconds() + time.backward.total_seconds();
  };
  EXPECT_NEAR(seconds({.seconds = 0.5}), 8, kExact);
  EXPECT_NEAR(seconds({.seconds = 0.5, .at_ends_of_parts = true}), 2 * (4 + 0.5 + 1), kExact);
}

// In the steady state the host is far ahead of kernels that take twice as long as their issue.
TEST(MicroBatchReplay, TheFirstOfAStepStartsAsFarBehindTheHostAsItsLeadSays) {
  const auto added = [](std::optional<double> lead) {
    Order order;
    order.kernel(2, kMainStream, 1);
    order.kernel(2, kMainStream, 1);
    return order.time(0, {.before_step = lead}).first_added_seconds;
  };
  EXPECT_NEAR(added(0), 1, kExact);
  EXPECT_NEAR(added(0.75), 0.25, kExact);
  EXPECT_NEAR(added(10), 0, kExact);
  EXPECT_NEAR(added(std::nullopt), 0, kExact);
}

// Nothing is left beside which the step's last reduction could run.
TEST(MicroBatchReplay, NothingHidesTheEndOfTheLastCommunication) {
  Order order;
  order.kernel(3);
  order.start(GroupKind::kDataContext, 2, 1);
  const MicroBatchTime time = order.time(0, {.before_step = std::nullopt});
  EXPECT_NEAR(time.forward.total_seconds(), 3, kExact);
  EXPECT_NEAR(time.first_added_seconds, 2, kExact);
}

TEST(MicroBatchReplay, TakesTheChunkAloneAndNothingThatHappensOnce) {
  Order order;
  order.kernel(1);
  order.chunk = 1;
  order.kernel(2);
  const int64_t of_other_chunk = order.record(kMainStream);
  order.chunk = -1;
  order.direction = Direction::kReduceGradients;
  order.call(GroupKind::kDataContext, 8);
  order.direction = Direction::kForward;
  order.wait(kMainStream, of_other_chunk);
  order.kernel(4);
  EXPECT_NEAR(order.time(0).forward.total_seconds(), 5, kExact);
  EXPECT_NEAR(order.time(1).forward.total_seconds(), 2, kExact);
  EXPECT_EQ(order.time(2).forward.total_seconds(), 0);
}

}  // namespace
}  // namespace estimator
