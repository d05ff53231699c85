#include "estimator/replay/trace_replay.h"

#include <gmock/gmock.h>

#include "tests/estimator/replay/traced_rank.h"

namespace estimator {
namespace {

using testing::Each;
using testing::IsEmpty;
using testing::SizeIs;

double iteration_of(const TracedRank& rank, const LaunchCost& launch = kFreeHost) {
  return replay({rank.played()}, launch).front().iteration_seconds();
}

TEST(TraceReplay, OneStreamDoesOneWorkAfterTheOther) {
  TracedRank rank(0);
  rank.compute(0, 2);
  rank.compute(0, 3);
  EXPECT_DOUBLE_EQ(iteration_of(rank), 5);
}

TEST(TraceReplay, StreamsThatDoNotWaitRunBesideEachOther) {
  TracedRank rank(0);
  rank.compute(0, 2);
  rank.compute(1, 3);
  EXPECT_DOUBLE_EQ(iteration_of(rank), 3);
}

TEST(TraceReplay, AnUpdateOnTheCpuTakesTheHostsTime) {
  TracedRank rank(0);
  rank.compute(0, 2);
  rank.host_waits_for_stream(0);
  rank.host_updates(300, true);
  rank.host_updates(100, false);
  rank.compute(0, 4);
  rank.host_waits_for_stream(0);
  ReplayRank played = rank.played();
  played.cpu_optimizer = {.fused_bytes_per_second = 100, .unfused_bytes_per_second = 20};
  EXPECT_DOUBLE_EQ(replay({played}, kFreeHost).front().iteration_seconds(), 2 + 3 + 5 + 4);
}

/// A gather on stream 1 for the next layer runs beside a layer on stream 0, which waits for it.
TEST(TraceReplay, WhatAStreamWaitsForIsExposedAsFarAsNothingHidesIt) {
  TracedRank rank(0);
  rank.compute(1, 4);  // the first gather: nothing hides it
  const int64_t first = rank.record(1);
  rank.compute(1, 5);  // the second: 3 of it are hidden
  const int64_t second = rank.record(1);
  rank.wait(0, first);
  rank.compute(0, 3);
  rank.wait(0, second);
  rank.compute(0, 1);
  const int64_t done = rank.record(0);
  rank.wait(1, done);
  const PlayedRank played = replay({rank.played()}, kFreeHost).front();
  EXPECT_DOUBLE_EQ(played.iteration_seconds(), 4 + 5 + 1);
  ASSERT_THAT(played.works, SizeIs(4));
  const double begin = played.iteration_start;
  EXPECT_DOUBLE_EQ(played.works[2].start - begin, 4);
  EXPECT_DOUBLE_EQ(played.works[2].end - begin, 7);
  EXPECT_DOUBLE_EQ(played.works[3].start - begin, 9);
}

TEST(TraceReplay, AWaitForARecordOfTheIterationBeforeIsOne) {
  TracedRank rank(0);
  rank.wait(1, -1);  // the last record of the iteration before
  rank.compute(1, 2);
  rank.compute(0, 3);
  rank.record(0);
  EXPECT_DOUBLE_EQ(iteration_of(rank), 3);  // 2 beside the 3, which are the longer chain
  TracedRank chained(0);
  chained.wait(1, -1);
  chained.compute(1, 2);
  const int64_t gathered = chained.record(1);
  chained.wait(0, gathered);
  chained.compute(0, 3);
  chained.record(0);
  EXPECT_DOUBLE_EQ(iteration_of(chained), 5);
}

TEST(TraceReplay, AHostThatIsSlowerThanItsGpuIsTheIteration) {
  TracedRank rank(0);
  for (int i = 0; i < 10; ++i) rank.compute(0, 1e-6, HostIssue::kCall, 4);
  for (int i = 0; i < 10; ++i) rank.compute(0, 1e-6, HostIssue::kNothing, 2);
  const LaunchCost launch{.host_call_seconds = 30e-6, .host_operator_seconds = 5e-6};
  EXPECT_NEAR(iteration_of(rank, launch), 600e-6, 1e-12);
  EXPECT_NEAR(replay({rank.played()}, launch).front().host_seconds, 600e-6, 1e-12);
}

// Of an operator's eight kernels the host begins the operator and launches one, and seven in a
// loop. Kernels of no operator are asked for from Python, each for itself.
TEST(TraceReplay, AnOperatorsFurtherKernelsTakeTheHostALaunchAlone) {
  const LaunchCost launch{
      .host_call_seconds = 30e-6, .host_operator_seconds = 5e-6, .host_loop_seconds = 2e-6};
  const auto host_seconds = [&](const char* operator_name) {
    TracedRank rank(0);
    rank.compute(0, 1e-9, HostIssue::kCall, 1);
    for (int i = 0; i < 7; ++i) rank.compute(0, 1e-9, HostIssue::kCall);
    for (TraceWork& work : rank.profile.trace->works) work.operator_name = operator_name;
    return replay({rank.played()}, launch).front().host_seconds;
  };
  EXPECT_NEAR(host_seconds("aten::sort"), 5e-6 + 30e-6 + 7 * 2e-6, 1e-12);
  EXPECT_NEAR(host_seconds(""), 5e-6 + 8 * 30e-6, 1e-12);
}

TEST(TraceReplay, WhatPythonDoesInAKnownRangeTakesTheHost) {
  const LaunchCost launch{.host_call_seconds = 30e-6, .host_ranges = {{"FSDP::pre_forward", 1e-3}}};
  TracedRank rank(0);
  for (int i = 0; i < 2; ++i) rank.compute(0, 1e-9, HostIssue::kCall);
  rank.profile.trace->ranges = {{1, "FSDP::pre_forward"}, {1, "FSDP::all_gather"}};
  EXPECT_NEAR(replay({rank.played()}, launch).front().host_seconds, 1e-3 + 60e-6, 1e-12);
}

TEST(TraceReplay, AHostThatWaitsIssuesNothingUntilThen) {
  const LaunchCost launch{.host_call_seconds = 1};
  const auto with_wait = [&](void (*wait)(TracedRank&)) {
    TracedRank rank(0);
    rank.compute(0, 10, HostIssue::kCall);
    rank.record(0);
    if (wait != nullptr) wait(rank);
    rank.compute(0, 1, HostIssue::kCall);
    return iteration_of(rank, launch);
  };
  EXPECT_DOUBLE_EQ(with_wait(nullptr), 11);  // the host is ahead
  EXPECT_DOUBLE_EQ(with_wait([](TracedRank& rank) { rank.host_waits_for_stream(0); }), 12);
  EXPECT_DOUBLE_EQ(with_wait([](TracedRank& rank) { rank.host_waits_for_record(0); }), 12);
  EXPECT_DOUBLE_EQ(with_wait([](TracedRank& rank) { rank.host_waits_for_device(); }), 12);
  EXPECT_DOUBLE_EQ(with_wait([](TracedRank& rank) { rank.host_waits_for_stream(7); }), 11);
}

TEST(TraceReplay, EndsWithTheLastWorkThatIsAskedFor) {
  TracedRank rank(0);
  rank.compute(0, 2);
  rank.compute(1, 1);
  rank.compute(0, 3);  // no work later than the second one is asked for
  rank.wait(0, 0);     // for a record that comes after it
  rank.compute(0, 1);
  rank.record(0);
  ReplayRank played = rank.played();
  played.iterations = 1;
  EXPECT_THROW(replay({played}, kFreeHost), UserError);
  played.last_event = 1;
  const PlayedRank until = replay({played}, kFreeHost).front();
  EXPECT_DOUBLE_EQ(until.works[0].end, 2);
  EXPECT_DOUBLE_EQ(until.works[1].end, 1);
  EXPECT_DOUBLE_EQ(until.works[2].end, 0);
}

TEST(TraceReplay, CallsOfOneCommunicatorRunOneAfterTheOtherOnAnyStream) {
  TracedRank rank(0);
  const int64_t data = rank.communicator("dp", 4);
  const int64_t tensor = rank.communicator("tp", 2);
  rank.collective(1, data, 2);
  rank.collective(2, data, 3);
  rank.collective(3, tensor, 4);
  EXPECT_DOUBLE_EQ(iteration_of(rank), 5);
}

TEST(TraceReplay, ACollectiveBeginsWhenItsLastPlayedMemberComes) {
  TracedRank quick(0);
  TracedRank slow(1);
  for (TracedRank* rank : {&quick, &slow}) {
    const int64_t data = rank->communicator("dp", 4);
    rank->compute(0, rank == &quick ? 1 : 6);
    rank->collective(0, data, 2);
  }
  const std::vector<PlayedRank> played = replay({quick.played(), slow.played()}, kFreeHost);
  EXPECT_DOUBLE_EQ(played[0].iteration_seconds(), 8);
  EXPECT_DOUBLE_EQ(played[1].iteration_seconds(), 8);
  EXPECT_DOUBLE_EQ(iteration_of(quick), 3) << "alone";
}

/// Two stages and two micro-batches, forward alone: the second stage fills and drains.
TEST(TraceReplay, MessagesBeginWhenBothEndsHaveComeToThem) {
  TracedRank first(0, 2);
  TracedRank second(1, 2);
  const int64_t from = first.communicator("pp", 2);
  const int64_t to = second.communicator("pp", 2);
  for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
    first.compute(0, 3);
    const int64_t made = first.record(0);
    first.wait(1, made);
    first.messages(1, from, 1, {{.is_send = true, .bytes = 8, .peer = 1}});
    second.messages(1, to, 1, {{.is_send = false, .bytes = 8, .peer = 0}});
    const int64_t came = second.record(1);
    second.wait(0, came);
    second.compute(0, 2);
  }
  const std::vector<PlayedRank> played = replay({first.played(), second.played()}, kFreeHost);
  ASSERT_THAT(played[1].works, SizeIs(4));
  const double begin = played[0].works[0].start;
  EXPECT_DOUBLE_EQ(played[1].works[0].end - begin, 4);
  EXPECT_DOUBLE_EQ(played[1].works[1].end - begin, 6);
  EXPECT_DOUBLE_EQ(played[1].works[3].end - begin, 9);
}

/// The stage in the middle has more messages before it.
TEST(TraceReplay, ACollectiveMeetsItsLikeAfterAnyNumberOfMessages) {
  std::vector<TracedRank> stages;
  for (int64_t stage = 0; stage < 3; ++stage) {
    TracedRank& rank = stages.emplace_back(stage, 3);
    const int64_t pipeline = rank.communicator("pp", 3);
    if (stage > 0)
      rank.messages(0, pipeline, 1, {{.is_send = false, .bytes = 8, .peer = stage - 1}});
    if (stage < 2)
      rank.messages(0, pipeline, 1, {{.is_send = true, .bytes = 8, .peer = stage + 1}});
    rank.collective(0, pipeline, 4);
  }
  const std::vector<PlayedRank> played =
      replay({stages[0].played(), stages[1].played(), stages[2].played()}, kFreeHost);
  for (const PlayedRank& rank : played) EXPECT_DOUBLE_EQ(rank.iteration_seconds(), 6);
}

/// Groups of the same name and members are told apart by their order.
TEST(TraceReplay, CommunicatorsOfOneNameAreTwo) {
  TracedRank one(0);
  TracedRank other(1);
  for (TracedRank* rank : {&one, &other}) {
    const int64_t first = rank->communicator("dp", 2);
    const int64_t second = rank->communicator("dp", 2);
    rank->collective(rank == &one ? 0 : 1, rank == &one ? first : second, 1);
    rank->collective(rank == &one ? 1 : 0, rank == &one ? second : first, 1);
  }
  EXPECT_DOUBLE_EQ(replay({one.played(), other.played()}, kFreeHost)[0].iteration_seconds(), 1);
}

TEST(TraceReplay, KernelsThatFillTheGpuSlowEachOther) {
  TracedRank rank(0);
  for (const int64_t stream : {0, 1}) {
    rank.compute(stream, stream == 0 ? 2 : 4);
    rank.last_occupies(WorkClass::kProducts, {.multiprocessors = 1});
    rank.record(stream);
  }
  rank.wait(0, 1);
  rank.wait(1, 0);
  const PlayedRank played = replay({rank.played()}, kFreeHost).front();
  EXPECT_DOUBLE_EQ(played.iteration_seconds(), 6);
  TracedRank small(0);
  for (const int64_t stream : {0, 1}) {
    small.compute(stream, 3);
    small.last_occupies(WorkClass::kMemoryBound, {.multiprocessors = 0.5});
  }
  EXPECT_DOUBLE_EQ(iteration_of(small), 3);
}

/// For 4 seconds the product has three quarters of the GPU, then all of it.
TEST(TraceReplay, NcclTakesMultiprocessorsFromWhatIsBoundByArithmetic) {
  const auto iteration_beside = [](WorkClass work_class) {
    TracedRank rank(0);
    const int64_t data = rank.communicator("dp", 4);
    rank.compute(0, 5);
    rank.last_occupies(work_class, {.multiprocessors = 1});
    const int64_t computed = rank.record(0);
    rank.collective(1, data, 4);
    rank.last_occupies(WorkClass::kCommunication, {.multiprocessors = 0.25, .ports = {.link = 1}});
    const int64_t gathered = rank.record(1);
    for (const int64_t stream : {0, 1}) {
      rank.wait(stream, computed);
      rank.wait(stream, gathered);
    }
    return iteration_of(rank);
  };
  EXPECT_DOUBLE_EQ(iteration_beside(WorkClass::kProducts), 6);
  EXPECT_DOUBLE_EQ(iteration_beside(WorkClass::kAttention), 6);
  EXPECT_DOUBLE_EQ(iteration_beside(WorkClass::kMemoryBound), 5);
}

/// Seconds of a product that needs 10 alone, beside a call of NCCL that needs `call` and begins
/// `later` than the product.
double persistent_product_beside(double call, double later, double occupies = 1) {
  TracedRank rank(0);
  const int64_t data = rank.communicator("dp", 4);
  if (later > 0) {
    rank.compute(1, later);
    rank.last_occupies(WorkClass::kCopies, {});
  }
  rank.collective(1, data, call);
  rank.last_occupies(WorkClass::kCommunication, {.multiprocessors = 0.25, .ports = {.link = 1}});
  rank.compute(0, 10);
  rank.last_occupies(WorkClass::kProducts, {.multiprocessors = occupies, .is_persistent = true});
  const int64_t computed = rank.record(0), gathered = rank.record(1);
  for (const int64_t stream : {0, 1}) {
    rank.wait(stream, computed);
    rank.wait(stream, gathered);
  }
  const PlayedRank played = replay({rank.played()}, kFreeHost).front();
  return played.works.back().end - played.works.back().start;
}

/// The last blocks need 33/47 of the time as soon as they are alone.
TEST(TraceReplay, LastBlocksOfAPersistentProductWaitForNcclOrTheFirstBlocks) {
  constexpr double kAlone = 33.0 / 47;
  EXPECT_DOUBLE_EQ(persistent_product_beside(100, 0), 10 + kAlone * 10);
  EXPECT_DOUBLE_EQ(persistent_product_beside(4, 0), 4 + (10 - 4) + kAlone * 4);
}

TEST(TraceReplay, APersistentProductHasItsMultiprocessorsUntilItsEnd) {
  EXPECT_DOUBLE_EQ(persistent_product_beside(100, 3), 10);
  EXPECT_DOUBLE_EQ(persistent_product_beside(100, 0, 0.75), 10);  // there is room for all blocks
}

/// Seconds of a product that needs 10 alone, on each of three equal ranks. It begins after a copy,
/// beside collectives that follow each other.
std::vector<double> products_of_equal_ranks(double copy, const std::vector<double>& collectives) {
  std::vector<TracedRank> ranks;
  for (const int64_t number : {0, 1, 2}) {
    TracedRank& rank = ranks.emplace_back(number);
    const int64_t data = rank.communicator("dp", 4);
    for (const double seconds : collectives) {
      rank.collective(1, data, seconds);
      rank.last_occupies(WorkClass::kCommunication, {.multiprocessors = 0.25});
    }
    const int64_t gathered = rank.record(1);
    rank.compute(0, copy);
    rank.last_occupies(WorkClass::kCopies, {});
    rank.compute(0, 10);
    rank.last_occupies(WorkClass::kProducts, {.multiprocessors = 1, .is_persistent = true});
    const int64_t computed = rank.record(0);
    rank.wait(1, computed);
    rank.wait(0, gathered);
  }
  std::vector<double> seconds;
  for (const PlayedRank& rank :
       replay({ranks[0].played(), ranks[1].played(), ranks[2].played()}, kFreeHost)) {
    seconds.push_back(rank.works.back().end - rank.works.back().start);
  }
  return seconds;
}

/// On every rank the product's last blocks wait for the 4 seconds of NCCL, whoever comes to them
/// last.
TEST(TraceReplay, EqualRanksDoTheSame) {
  const auto is_late = testing::DoubleEq(10 + 33.0 / 47 * 4);
  EXPECT_THAT(products_of_equal_ranks(0, {4}), Each(is_late));
  EXPECT_THAT(products_of_equal_ranks(3, {3, 4}), Each(is_late)) << "one ends as they begin";
  EXPECT_THAT(products_of_equal_ranks(0, {0, 4}), Each(is_late)) << "one takes no time";
  EXPECT_THAT(products_of_equal_ranks(0, {1, 3}), Each(is_late)) << "NCCL goes on without a gap";
}

TEST(TraceReplay, NcclTakesMemoryFromWhatIsBoundByIt) {
  const auto beside_nccl = [](WorkClass work_class, double memory) {
    TracedRank rank(0);
    const int64_t group = rank.communicator("dp", 1);
    rank.collective(1, group, 100);
    rank.last_occupies(WorkClass::kCommunication, {.memory = 0.25});
    rank.compute(0, 6);
    rank.last_occupies(work_class, {.memory = memory});
    const PlayedRank played = replay({rank.played()}, kFreeHost).front();
    return played.works[1].end - played.works[1].start;
  };
  EXPECT_DOUBLE_EQ(beside_nccl(WorkClass::kMemoryBound, 1), 8);
  EXPECT_DOUBLE_EQ(beside_nccl(WorkClass::kProducts, 0.5), 6);
}

TEST(TraceReplay, CallsOfTwoCommunicatorsShareAPortButNotTwo) {
  const auto iteration_with = [](const PortUse& one, const PortUse& other) {
    TracedRank rank(0);
    const int64_t data = rank.communicator("dp", 4);
    const int64_t tensor = rank.communicator("tp", 2);
    rank.collective(1, data, 4);
    rank.last_occupies(WorkClass::kCommunication, {.ports = one});
    rank.collective(2, tensor, 4);
    rank.last_occupies(WorkClass::kCommunication, {.ports = other});
    return iteration_of(rank);
  };
  EXPECT_DOUBLE_EQ(iteration_with({.link = 1}, {.link = 1}), 8);
  EXPECT_DOUBLE_EQ(iteration_with({.link = 1}, {.nic = 1}), 4);
  EXPECT_DOUBLE_EQ(iteration_with({.link = 0.5}, {.link = 0.5}), 4);
}

TEST(MissingPeers, AreStagesThatWereNotRun) {
  TracedRank stage(4, 16);
  const int64_t pipeline = stage.communicator("pp", 4, 0, 4);
  stage.messages(0, pipeline, 1, {{.is_send = false, .bytes = 8, .peer = 0}});
  stage.messages(0, pipeline, 1, {{.is_send = true, .bytes = 8, .peer = 2}});
  const std::vector<MissingPeer> missing = missing_peers({&stage.profile});
  ASSERT_THAT(missing, SizeIs(2));
  EXPECT_EQ(missing[0].peer, 0);
  EXPECT_EQ(missing[1].peer, 8);
}

TEST(MissingPeers, AreNoneWhereAllMembersDoTheSame) {
  TracedRank rank(0);
  const int64_t ring = rank.communicator("cp", 4);
  rank.messages(
      0,
      ring,
      1,
      {{.is_send = true, .bytes = 8, .peer = 1}, {.is_send = false, .bytes = 8, .peer = 3}});
  EXPECT_THAT(missing_peers({&rank.profile}), IsEmpty());
  EXPECT_DOUBLE_EQ(iteration_of(rank), 1);
}

}  // namespace
}  // namespace estimator
