#include "estimator/step/chunk_replay.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "estimator/schedule/piece_order.h"

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
  /// Bound by arithmetic, on the whole GPU.
  void product(double seconds) {
    kernel(seconds);
    records_.operators.back()->price.work_class = WorkClass::kProducts;
    records_.operators.back()->price.occupancy.multiprocessors = 1;
  }
  void host_reads(double issue_seconds) {
    kernel(0, kMainStream, issue_seconds);
    records_.operators.back()->host_waits = true;
  }
  RecordPrice& call(GroupKind group, double seconds, int64_t stream = kMainStream) {
    records_.collectives.push_back(
        RecordPrice{.price = {.seconds = seconds, .work_class = WorkClass::kCommunication},
                    .group = group,
                    .axis_group = group});
    add(OrderKind::kCollective, stream, static_cast<int64_t>(records_.collectives.size()) - 1);
    return *records_.collectives.back();
  }
  RecordPrice& last_call() { return *records_.collectives.back(); }
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

  /// Before the next event.
  void range(const std::string& name) {
    order_.ranges.push_back({.event = std::ssize(order_.events.kind), .name = name});
  }
  void all_in_one_graph() { records_.graphs.graph_of_event.assign(order_.events.kind.size(), 0); }

  /// A kernel as a piece of a layer, after the piece before it: see schedule/piece_order.h.
  void piece(PieceKind kind, double seconds, int64_t stream = kMainStream, int64_t layer = 0) {
    const bool is_delayed = kind == PieceKind::kMlpWeights;
    add(OrderKind::kPiece, stream, Piece{.layer = layer, .kind = kind}.number());
    if (!is_delayed && last_piece_ >= 0) wait(stream, last_piece_);
    kernel(seconds, stream);
    if (!is_delayed) last_piece_ = record(stream);
  }
  void begin_part(Direction of, int64_t of_chunk) {
    direction = of;
    chunk = of_chunk;
    last_piece_ = -1;
  }
  PartTime pair(int64_t forward_chunk, int64_t backward_chunk) const {
    return PairPlayer(order_, records_, {forward_chunk, backward_chunk}, {}, false).play(records_);
  }

  ChunkPlayer player() const { return {order_, records_, 0, {}}; }
  const PricedRecords& records() const { return records_; }

  ChunkReplay time(int64_t of_chunk = 0, const HostWaits& waits = {}) const {
    return replay_chunk(order_, records_, of_chunk, waits);
  }

  Direction direction = Direction::kForward;
  int64_t chunk = 0;

 private:
  void add(OrderKind kind, int64_t stream, int64_t item) {
    order_.events.add(
        {.kind = kind, .stream = stream, .item = item, .chunk = chunk, .direction = direction});
  }

  StepOrder order_{.modules = {""}, .events = {}};
  PricedRecords records_;
  int64_t last_piece_ = -1;  ///< the record at its end
};

constexpr double kExact = 1e-9;

TEST(ChunkReplay, OfOneStreamIsTheSumOfItsWorks) {
  Order order;
  order.kernel(1);
  order.call(GroupKind::kTensor, 0.5);
  order.kernel(2);
  order.direction = Direction::kBackward;
  order.kernel(4);
  order.direction = Direction::kRecompute;
  order.call(GroupKind::kExpert, 0.25);
  const ChunkReplay time = order.time();
  EXPECT_NEAR(time.forward.compute_seconds, 3, kExact);
  EXPECT_NEAR(time.forward.communication_seconds.tensor, 0.5, kExact);
  EXPECT_NEAR(time.backward.compute_seconds, 4, kExact);
  EXPECT_NEAR(time.backward.communication_seconds.expert, 0.25, kExact);
}

TEST(ChunkReplay, HidesACallBesideTheKernelsThatDoNotWaitForIt) {
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
TEST(ChunkReplay, SendsAndReceivesAtTheSameTime) {
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

TEST(ChunkReplay, SharesPortsBetweenCallsOfTwoStreams) {
  Order order;
  const int64_t gathered = order.start(GroupKind::kDataContext, 1, 1, {.link = 1});
  order.call(GroupKind::kTensor, 1).price.occupancy.ports = {.link = 1};
  order.wait(kMainStream, gathered);
  order.kernel(1);
  const PartTime forward = order.time().forward;
  EXPECT_NEAR(forward.compute_seconds, 1, kExact);
  EXPECT_NEAR(sum_of(forward.communication_seconds), 2, kExact);
}

TEST(ChunkReplay, WaitsForARecordOfTheMicroBatchBefore) {
  Order order;
  order.wait(1, -1);  // the only record
  order.call(GroupKind::kDataContext, 1, 1);
  order.kernel(1);
  order.record(kMainStream);
  order.wait(kMainStream, 0);
  EXPECT_NEAR(order.time().forward.compute_seconds, 1, kExact);
}

TEST(ChunkReplay, CountsTheHostWhereItIsSlowerThanTheGpu) {
  Order order;
  for (int i = 0; i < 10; ++i) order.kernel(1e-3, kMainStream, 3e-3);
  order.direction = Direction::kBackward;
  order.kernel(5e-3, kMainStream, 1e-3);
  const ChunkReplay time = order.time();
  EXPECT_NEAR(time.forward.total_seconds() + time.backward.total_seconds(), 31e-3, kExact);
}

// The host learns the value 1 s after the GPU has it, and needs 2 s for the next kernel.
TEST(ChunkReplay, LeavesTheGpuIdleAfterTheHostHasReadAValue) {
  Order order;
  order.kernel(10, kMainStream, 2);
  order.host_reads(0);
  EXPECT_NEAR(order.time(0, {.seconds = 1}).forward.compute_seconds, 13, kExact);
}

// The host needs 2 x 2 s for its calls, and the GPU 2 x 1 s.
TEST(ChunkReplay, CountsThePythonBetweenTheHostsCalls) {
  Order order;
  for (const auto& [direction, range] :
       {std::pair(Direction::kForward, "_Linear"), std::pair(Direction::kBackward, "unknown")}) {
    order.direction = direction;
    order.kernel(1, kMainStream, 2);
    order.range(range);
    order.kernel(1, kMainStream, 2);
  }
  const ChunkReplay time = order.time(0, {.range_seconds = {{"_Linear", 3}}});
  EXPECT_NEAR(time.forward.total_seconds() + time.backward.total_seconds(), 8 + 3, kExact);
}

TEST(ChunkReplay, RunsNoPythonInsideOfAGraph) {
  Order order;
  order.kernel(1, kMainStream, 2);
  order.range("_Linear");
  order.kernel(1, kMainStream, 2);
  order.all_in_one_graph();
  const ChunkReplay time = order.time(0, {.range_seconds = {{"_Linear", 3}}});
  EXPECT_NEAR(time.forward.total_seconds(), 2, kExact);
}

// The host is 1 s ahead of the GPU within a part, but not beyond its end, or that of a backward.
TEST(ChunkReplay, StartsWithAnIdleGpuWhereTheHostWaitsForIt) {
  const auto seconds = [](const HostWaits& waits) {
    Order order;
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      order.direction = direction;
      order.kernel(2, kMainStream, 1);
      order.kernel(2, kMainStream, 1);
    }
    const ChunkReplay time = order.time(0, waits);
    return time.forward.total_seconds() + time.backward.total_seconds();
  };
  EXPECT_NEAR(seconds({.seconds = 0.5}), 8, kExact);
  EXPECT_NEAR(seconds({.seconds = 0.5, .at_ends_of_parts = true}), 2 * (4 + 0.5 + 1), kExact);
  EXPECT_NEAR(seconds({.seconds = 0.5, .at_ends_of_micro_batches = true}), 8 + 0.5 + 1, kExact);
}

// In the steady state the host is far ahead of kernels that take twice as long as their issue.
TEST(ChunkReplay, TheFirstOfAStepStartsAsFarBehindTheHostAsItsLeadSays) {
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
TEST(ChunkReplay, NothingHidesTheEndOfTheLastCommunication) {
  Order order;
  order.kernel(3);
  order.start(GroupKind::kDataContext, 2, 1);
  const ChunkReplay time = order.time(0, {.before_step = std::nullopt});
  EXPECT_NEAR(time.forward.total_seconds(), 3, kExact);
  EXPECT_NEAR(time.first_added_seconds, 2, kExact);
}

TEST(ChunkReplay, TakesTheChunkAloneAndNothingThatHappensOnce) {
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

/// A backward of five kernels of 2 s on the chunk `order.chunk`, with a bucket of `seconds` after
/// each.
void reduced_backward(Order& order, double seconds) {
  for (int i = 0; i < 5; ++i) {
    order.direction = Direction::kBackward;
    order.kernel(2);
    order.direction = Direction::kReduceGradients;
    order.start(GroupKind::kDataContext, seconds, 1);
  }
}

// Buckets are full at 2, 4, 6, 8 and 10 s of the last backward.
TEST(ChunkReplay, ReductionsThatKeepUpWithTheBackwardLeaveTheirLastBucket) {
  Order order;
  reduced_backward(order, 1);
  const ReductionTime reduction = order.time().reduction;
  EXPECT_NEAR(reduction.beside_seconds, 4, kExact);
  EXPECT_NEAR(reduction.backward_added_seconds, 0, kExact);
  EXPECT_NEAR(reduction.left_seconds, 0, kExact);
  EXPECT_NEAR(reduction.end_seconds, 1, kExact);
}

TEST(ChunkReplay, ReductionsThatDoNotKeepUpQueue) {
  Order order;
  reduced_backward(order, 4);
  const ReductionTime reduction = order.time().reduction;
  EXPECT_NEAR(reduction.left_seconds, 2 + 4 * 4 - 10, kExact);
  EXPECT_NEAR(reduction.end_seconds, 4, kExact);
}

// A usual micro-batch has none of them.
TEST(ChunkReplay, ReductionsComeOnceInAStep) {
  Order order;
  reduced_backward(order, 4);
  EXPECT_NEAR(order.time().backward.total_seconds(), 10, kExact);
}

// A player that has played other prices gives what a new one does.
TEST(ChunkPlayer, SharesTheUsualLapsOfPlansWithOtherReductions) {
  Order order;
  reduced_backward(order, 4);
  ChunkPlayer player = order.player();
  for (const double seconds : {1.0, 4.0, 2.5, 1.0}) {
    Order other;
    reduced_backward(other, seconds);
    const ChunkReplay shared = player.play(other.records()), alone = other.time();
    EXPECT_EQ(shared.backward.compute_seconds, alone.backward.compute_seconds);
    EXPECT_EQ(shared.reduction.beside_seconds, alone.reduction.beside_seconds);
    EXPECT_EQ(shared.reduction.left_seconds, alone.reduction.left_seconds);
    EXPECT_EQ(shared.reduction.end_seconds, seconds);
  }
}

TEST(ChunkReplay, WithoutOverlapReductionsComeOneAfterTheOtherAtTheEnd) {
  Order order;
  order.direction = Direction::kBackward;
  order.kernel(10);
  order.direction = Direction::kReduceGradients;
  order.kernel(0.5);  // scales the gradients
  const int64_t reduced = order.start(GroupKind::kDataContext, 3, 1);
  order.wait(kMainStream, reduced);
  order.kernel(0.25);  // copies them back
  const ReductionTime reduction = order.time().reduction;
  EXPECT_EQ(reduction.beside_seconds, 0);
  EXPECT_NEAR(reduction.end_seconds, 3.75, kExact);
}

// A fifth of the multiprocessors for 1 s of the 8 that follow.
TEST(ChunkReplay, ReductionsTakeMultiprocessorsFromTheBackward) {
  Order order;
  order.direction = Direction::kBackward;
  order.product(2);
  order.direction = Direction::kReduceGradients;
  order.start(GroupKind::kDataContext, 1, 1);
  order.last_call().price.occupancy.multiprocessors = 0.2;
  order.direction = Direction::kBackward;
  order.product(8);
  EXPECT_NEAR(order.time().reduction.backward_added_seconds, 0.2, kExact);
}

// Two calls that each fill a port take together what they take one after the other.
TEST(ChunkReplay, ReductionsShareThePortWithTheCallsOfTheBackward) {
  for (const PortUse& ports : {PortUse{.link = 1}, PortUse{.nic = 1}}) {
    Order order;
    order.direction = Direction::kBackward;
    order.kernel(1);
    order.direction = Direction::kReduceGradients;
    order.start(GroupKind::kDataContext, 2, 1, {.link = 1});
    order.direction = Direction::kBackward;
    order.call(GroupKind::kTensor, 3).price.occupancy.ports = ports;
    order.kernel(1);
    const ReductionTime reduction = order.time().reduction;
    EXPECT_NEAR(reduction.backward_added_seconds, ports.link > 0 ? 2 : 0, kExact);
    EXPECT_EQ(reduction.left_seconds, 0);
  }
}

// The second chunk's only bucket is full when its backward ends; the first chunk's comes later.
TEST(ChunkReplay, ALaterChunksReductionSlowsWhatFollowsIt) {
  Order order;
  order.chunk = 1;
  order.direction = Direction::kBackward;
  order.product(10);
  order.direction = Direction::kReduceGradients;
  order.start(GroupKind::kDataContext, 5, 1);
  order.last_call().price.occupancy.multiprocessors = 0.1;
  order.chunk = 0;
  order.direction = Direction::kBackward;
  order.product(10);
  const ReductionTime reduction = order.time(1).reduction;
  EXPECT_NEAR(reduction.left_seconds, 5, kExact);
  EXPECT_NEAR(reduction.next_added_seconds, 0.5, kExact);
  EXPECT_NEAR(reduction.end_seconds, 0, kExact);
  EXPECT_EQ(order.time(0).reduction.beside_seconds, 0);
}

/// A forward whose updated parameters come in two buckets: the first is asked for with the forward
/// or before it, the second when the first is there.
Order gathered_forward(double first, double second) {
  Order order;
  order.direction = Direction::kOptimizerStep;
  order.wait(kMainStream, order.start(GroupKind::kDataContext, first, 1));
  const int64_t gathered = order.start(GroupKind::kDataContext, second, 1);
  order.direction = Direction::kForward;
  order.kernel(3);
  order.direction = Direction::kOptimizerStep;
  order.wait(kMainStream, gathered);
  order.direction = Direction::kForward;
  order.kernel(1);
  return order;
}

TEST(ChunkReplay, TheFirstForwardWaitsForTheBucketsThatAreNotHidden) {
  const GatherTime hidden = gathered_forward(2, 2.5).time().gathers;
  EXPECT_NEAR(hidden.seconds, 4.5, kExact);
  EXPECT_NEAR(hidden.added_seconds, 2, kExact);
  EXPECT_NEAR(gathered_forward(2, 4).time().gathers.added_seconds, 2 + 1, kExact);
  EXPECT_NEAR(gathered_forward(2, 4).time().forward.total_seconds(), 4, kExact);
}

TEST(ChunkReplay, GathersAfterTheBackwardAreNotPlayed) {
  Order order;
  order.kernel(1);
  order.direction = Direction::kOptimizerStep;
  order.start(GroupKind::kDataContext, 2, 1);
  EXPECT_EQ(order.time().gathers.seconds, 0);
}

// Whatever runs beside what, and however it shares the GPU: hidden work is never dearer than work
// that follows.
TEST(ChunkReplay, OverlapIsNeverLonger) {
  std::mt19937 random(7);
  const auto drawn = [&](double most) { return std::uniform_real_distribution<>(0, most)(random); };
  for (int i = 0; i < 500; ++i) {
    Order overlapped, exposed;
    std::vector<double> reductions;
    const double ports = drawn(1), multiprocessors = drawn(0.5);
    const auto reduce = [&](Order& order, double seconds) {
      order.direction = Direction::kReduceGradients;
      order.start(GroupKind::kDataContext, seconds, 1, {.link = ports});
      order.last_call().price.occupancy.multiprocessors = multiprocessors;
    };
    const int64_t works = std::uniform_int_distribution<>(1, 8)(random);
    for (int64_t work = 0; work < works; ++work) {
      const double seconds = 0.1 + drawn(2), call_seconds = drawn(1);
      for (Order* order : {&overlapped, &exposed}) {
        order->direction = Direction::kBackward;
        order->product(seconds);
        order->call(GroupKind::kTensor, call_seconds).price.occupancy.ports = {.link = 1};
      }
      reductions.push_back(drawn(3));
      reduce(overlapped, reductions.back());
    }
    for (const double seconds : reductions) reduce(exposed, seconds);
    const ReductionTime beside = overlapped.time().reduction, after = exposed.time().reduction;
    EXPECT_LE(beside.backward_added_seconds + beside.left_seconds + beside.end_seconds,
              after.end_seconds + kExact);
  }
}

/// Two chunks of one layer of experts; the second one's attention takes longer.
Order chunks_in_pieces() {
  using enum PieceKind;
  constexpr int64_t kSending = 1;
  Order order;
  for (const int64_t chunk : {0, 1}) {
    order.begin_part(Direction::kForward, chunk);
    order.piece(kAttention, chunk == 0 ? 3 : 4);
    order.piece(kDispatch, 2, kSending);
    order.piece(kMlp, 4);
    order.piece(kCombine, 2, kSending);
    order.begin_part(Direction::kBackward, chunk);
    order.piece(kCombine, 2, kSending);
    order.piece(kMlp, 5);
    order.piece(kMlpWeights, 3);
    order.piece(kDispatch, 2, kSending);
    order.piece(kAttention, 6);
  }
  return order;
}

// The compute stream runs without a gap: attention 3, the backward of the experts 5 and of their
// weights 3, the experts 4 and the backward of attention 6; all that is sent fits beside them.
TEST(PairReplay, HidesWhatOneMicroBatchSendsBehindTheComputeOfTheOther) {
  EXPECT_NEAR(chunks_in_pieces().pair(0, 0).total_seconds(), 21, kExact);
  EXPECT_NEAR(chunks_in_pieces().pair(1, 0).total_seconds(), 22, kExact);
}

// Alone nothing runs beside the pieces that send, but for the weights' gradients beside a dispatch:
// 3 + 2 + 4 + 2 forward, 2 + 5 + 3 + 6 backward.
TEST(PairReplay, HasForwardsAndBackwardsThatRunAlone) {
  const ChunkReplay alone = chunks_in_pieces().time();
  EXPECT_NEAR(alone.forward.total_seconds(), 11, kExact);
  EXPECT_NEAR(alone.backward.total_seconds(), 16, kExact);
}

}  // namespace
}  // namespace estimator
