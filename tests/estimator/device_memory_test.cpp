#include "estimator/device_memory.h"

#include <gtest/gtest.h>

#include "estimator/units.h"
#include "test_plans.h"

namespace estimator {
namespace {

CollectiveRecord used(CollectiveKind kind, GroupKind group, int64_t group_size, int64_t peer = -1) {
  CollectiveCall call;
  call.kind = kind;
  call.group = group;
  call.group_size = group_size;
  call.peer = peer;
  return collectives(Direction::kForward, call, 1);
}

int64_t total(const Plan& plan, std::vector<CollectiveRecord> records) {
  RankProfile profile = profile_of(plan, 0);
  profile.collectives = std::move(records);
  int64_t sum = 0;
  for (const MemoryTerm& term :
       communicator_memory(profile, ParallelLayout(plan), fabric_of(plan))) {
    EXPECT_EQ(term.source, Source::kAssumed);
    EXPECT_FALSE(term.note.empty());
    EXPECT_LE(term.low_bytes, term.value_bytes);
    EXPECT_GE(term.high_bytes, term.value_bytes);
    sum += term.value_bytes;
  }
  return sum;
}

TEST(CommunicatorMemory, OfNoCollectivesIsNothing) { EXPECT_EQ(total(meta_plan(), {}), 0); }

TEST(CommunicatorMemory, OfAGroupOfOneIsNothing) {
  EXPECT_EQ(total(meta_plan(), {used(CollectiveKind::kAllReduce, GroupKind::kContext, 1)}), 0);
}

// 24 channels x 12 MiB, and NVLS of 8 local ranks x 2 x 16 channels x 1 MiB = 256 MiB (nvls.cc).
TEST(CommunicatorMemory, OfATensorGroupIsARingAndNvlsOnce) {
  EXPECT_EQ(total(meta_plan(),
                  {used(CollectiveKind::kAllGather, GroupKind::kTensor, 8),
                   used(CollectiveKind::kReduceScatter, GroupKind::kTensor, 8),
                   used(CollectiveKind::kAllReduce, GroupKind::kTensor, 8)}),
            (288 + 256) * kMiB);
}

TEST(CommunicatorMemory, OfAGroupOfTwoHasNoNvls) {
  const Plan plan = small_plan({{"parallelism", {{"tensor", 2}}}});
  EXPECT_EQ(total(plan, {used(CollectiveKind::kAllGather, GroupKind::kTensor, 2)}), 288 * kMiB);
}

TEST(CommunicatorMemory, OfAnAllReduceAcrossMachinesAddsATree) {
  const int64_t ring =
      total(meta_plan(), {used(CollectiveKind::kReduceScatter, GroupKind::kDataContext, 128)});
  EXPECT_EQ(ring, 4 * 12 * kMiB);
  EXPECT_EQ(total(meta_plan(), {used(CollectiveKind::kAllReduce, GroupKind::kDataContext, 128)}),
            3 * ring);
}

// nccl issue 1685: an all-to-all with 7 peers over 32 channels of 14 MiB raised memory by 3.28 GB.
TEST(CommunicatorMemory, OfSevenPeersOverNvlinkIsAsMeasured) {
  std::vector<CollectiveRecord> sends;
  for (int64_t peer = 1; peer < 8; ++peer) {
    sends.push_back(used(CollectiveKind::kSend, GroupKind::kTensor, 8, peer));
  }
  EXPECT_EQ(total(meta_plan(), sends), 7 * 32 * 14 * kMiB);
}

TEST(CommunicatorMemory, OfAPipelineGrowsWithItsPeersNotItsCalls) {
  const auto send = [](int64_t peer) {
    return used(CollectiveKind::kSend, GroupKind::kPipeline, 16, peer);
  };
  const auto receive = [](int64_t peer) {
    return used(CollectiveKind::kRecv, GroupKind::kPipeline, 16, peer);
  };
  const int64_t first = total(meta_plan(), {send(1), receive(1)});
  EXPECT_EQ(first, 2 * 14 * kMiB);
  EXPECT_EQ(total(meta_plan(), {send(1), receive(1), send(3), receive(3)}), 2 * first);
}

TEST(ContextMemory, IsTheDatabasesAndSaysThatItIsAssumed) {
  const MemoryTerm term = context_memory(*find_gpu("h100-sxm"));
  EXPECT_EQ(term.value_bytes, find_gpu("h100-sxm")->context_bytes);
  EXPECT_EQ(term.source, Source::kAssumed);
  EXPECT_EQ(term.note, find_gpu("h100-sxm")->context_source);
}

TEST(ContextMemory, HasTheBandOfPublishedFigures) {
  // At least what a first tensor took (pytorch pull request 86509), at most 300 MiB of late
  // modules.
  const Gpu& gpu = *find_gpu("h100-sxm");
  const MemoryTerm term = context_memory(gpu);
  EXPECT_EQ(term.low_bytes, 287'047'680);
  EXPECT_EQ(term.high_bytes, gpu.context_bytes + 300 * kMiB);
}

TEST(ContextMemory, OfEagerLoadingIsAsBigscienceMeasured) {
  const MemoryTerm term = context_memory(*find_gpu("a100"), ModuleLoading::kEager);
  EXPECT_EQ(term.value_bytes, 1271 * kMiB);
  EXPECT_EQ(term.source, Source::kPublished);
}

}  // namespace
}  // namespace estimator
