#include "estimator/memory/communicator_memory.h"

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
       communicator_memory(profile, ParallelLayout(plan.parallelism), fabric_of(plan))) {
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
  EXPECT_EQ(ring, 4 * (10 + 10) * kMiB);  // LL128 and Simple lie on the sender's side too
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

// A rank of each machine: 4 channels, 16 steps of 128 KiB each, once to send and once to receive.
TEST(CommunicatorMemory, OfAPipelineOverTheNetworkIsTwoPoolsForAllPeers) {
  const auto send = [](int64_t peer) {
    return used(CollectiveKind::kSend, GroupKind::kPipeline, 16, peer);
  };
  const auto receive = [](int64_t peer) {
    return used(CollectiveKind::kRecv, GroupKind::kPipeline, 16, peer);
  };
  const int64_t pools = 2 * 4 * 16 * 128 * kKiB;
  EXPECT_EQ(total(meta_plan(), {send(1), receive(1)}), pools);
  EXPECT_EQ(total(meta_plan(), {send(1), receive(1), send(3), receive(3)}), pools);
}

// Megatron-LM's interleaved stages post messages one by one (_p2p_ops in megatron/core/
// pipeline_parallel/p2p_communication.py): a communicator, and two pools, for each neighbour.
TEST(CommunicatorMemory, OfInterleavedStagesIsAPairForEachNeighbour) {
  const auto stages = [](bool overlap) {
    const Plan plan = small_plan(
        {{"model", {{"num_layers", 8}}},
         {"cluster", {{"nodes", 4}, {"gpus_per_node", 1}}},
         {"parallelism",
          {{"pipeline", 4}, {"virtual_stages", 2}, {"overlap_p2p_communication", overlap}}},
         {"training", {{"global_batch_size", 16}}}});
    return total(plan,
                 {used(CollectiveKind::kSend, GroupKind::kPipeline, 4, 1),
                  used(CollectiveKind::kRecv, GroupKind::kPipeline, 4, 3)});
  };
  const int64_t pools = 2 * 4 * 16 * 128 * kKiB;
  EXPECT_EQ(stages(false), pools);
  EXPECT_EQ(stages(true), 2 * pools);
}

TEST(CommunicatorMemory, OfAnAllToAllIsThatOfEveryPeer) {
  EXPECT_EQ(total(meta_plan(), {used(CollectiveKind::kAllToAll, GroupKind::kTensor, 8)}),
            7 * 32 * 14 * kMiB);
}

// Two machines of 8 x 400 Gb: 16 channels; to a peer ceil(50 / 14) = 4, which two batches of 8
// peers leave at 4. Seven neighbours; each one's sending pool lies here too, for its messages to
// this rank's rail.
TEST(CommunicatorMemory, OfAnAllToAllAcrossMachinesHasThePoolsOfItsNeighbours) {
  const Plan plan = small_plan({{"cluster", {{"nodes", 2}, {"gpus_per_node", 8}}},
                                {"training", {{"global_batch_size", 16}}}});
  EXPECT_EQ(total(plan, {used(CollectiveKind::kAllToAll, GroupKind::kWorld, 16)}),
            (7 * 4 * 14 + (8 + 1) * 16 * 2) * kMiB);
}

// 256 ranks are 32 batches of 8 peers: only one of 16 channels is left to each.
TEST(CommunicatorMemory, OfAWideAllToAllHasFewerChannelsToAPeer) {
  const Plan plan = small_plan({{"cluster", {{"nodes", 32}, {"gpus_per_node", 8}}},
                                {"training", {{"global_batch_size", 256}}}});
  EXPECT_EQ(total(plan, {used(CollectiveKind::kAllToAll, GroupKind::kWorld, 256)}),
            (7 * 1 * 14 + (8 + 1) * 16 * 2) * kMiB);
}

TEST(CommunicatorMemory, OfAnAllToAllOnOneRailNeedsNoNeighbour) {
  EXPECT_EQ(total(meta_plan(), {used(CollectiveKind::kAllToAll, GroupKind::kDataContext, 128)}),
            2 * 4 * 2 * kMiB);
}

// NCCL 2.10 inside a domain of A100s: issue 964 saw 544 MiB for 2 ranks and 688 for 4. 24 channels
// of 12 MiB for the ring, and for the tree 2 (n - 1) connections over n ranks.
TEST(CommunicatorMemory, OfAnOlderNcclHasItsTreesFromTheStart) {
  const auto of_tensor_groups = [](int64_t size) {
    const Plan plan = small_plan({{"cluster", {{"gpu", "a100"}}},
                                  {"parallelism", {{"tensor", size}}},
                                  {"training", {{"framework", "megatron-deepspeed"}}}});
    RankProfile profile = profile_of(plan, 0);
    profile.collectives = {used(CollectiveKind::kAllReduce, GroupKind::kTensor, size)};
    std::vector<int64_t> bytes;
    for (const auto& term :
         communicator_memory(profile, ParallelLayout(plan.parallelism), fabric_of(plan))) {
      if (term.name.find("tensor") != std::string::npos) bytes.push_back(term.value_bytes);
    }
    return bytes;
  };
  // Megatron's group, and DeepSpeed's own of the same ranks.
  EXPECT_EQ(of_tensor_groups(2), (std::vector<int64_t>{576 * kMiB, 576 * kMiB}));
  EXPECT_EQ(of_tensor_groups(4), (std::vector<int64_t>{720 * kMiB, 720 * kMiB}));
}

}  // namespace
}  // namespace estimator
