#include "estimator/memory/device_memory.h"

#include <gtest/gtest.h>

#include "estimator/base/units.h"
#include "tests/estimator/test_plans.h"

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

// NCCL 2.10 inside an island of A100s: issue 964 saw 544 MiB for 2 ranks and 688 for 4. 24 channels
// of 12 MiB for the ring, and for the tree 2 (n - 1) connections over n ranks.
TEST(CommunicatorMemory, OfAnOlderNcclHasItsTreesFromTheStart) {
  const auto of_tensor_groups = [](int64_t size) {
    const Plan plan = small_plan({{"cluster", {{"gpu", "a100"}}},
                                  {"parallelism", {{"tensor", size}}},
                                  {"training", {{"dialect", "megatron-deepspeed"}}}});
    RankProfile profile = profile_of(plan, 0);
    profile.collectives = {used(CollectiveKind::kAllReduce, GroupKind::kTensor, size)};
    std::vector<int64_t> bytes;
    for (const auto& term : communicator_memory(profile, ParallelLayout(plan), fabric_of(plan))) {
      if (term.name.find("tensor") != std::string::npos) bytes.push_back(term.value_bytes);
    }
    return bytes;
  };
  // Megatron's group, and DeepSpeed's own of the same ranks.
  EXPECT_EQ(of_tensor_groups(2), (std::vector<int64_t>{576 * kMiB, 576 * kMiB}));
  EXPECT_EQ(of_tensor_groups(4), (std::vector<int64_t>{720 * kMiB, 720 * kMiB}));
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
  EXPECT_EQ(term.value_bytes, 1573 * kMiB);
  EXPECT_EQ(term.source, Source::kPublished);
}

// cuBLAS's manual: 32 MiB for a handle from Hopper on, else 4 MiB; one handle for each thread.
TEST(LibraryMemory, IsTheWorkspaceOfTwoCublasHandlesInABand) {
  const MemoryTerm hopper = library_memory(*find_gpu("h100-sxm"));
  EXPECT_EQ(hopper.value_bytes, 64 * kMiB);
  EXPECT_EQ(hopper.low_bytes, 0);
  // 132 SMs x 2,048 threads x 1 KiB, a printf FIFO of 1 MiB, a heap of 8 MiB.
  EXPECT_EQ(hopper.high_bytes, (64 + 132 * 2 + 9) * kMiB);
  EXPECT_EQ(hopper.source, Source::kAssumed);
  EXPECT_EQ(library_memory(*find_gpu("a100")).value_bytes, 8 * kMiB);
}

}  // namespace
}  // namespace estimator
