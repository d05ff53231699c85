#include "estimator/communication/nccl_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "estimator/base/units.h"
#include "estimator/communication/nccl_channels.h"

namespace estimator {
namespace {

using enum NcclAlgorithm;
using enum NcclProtocol;

constexpr double kHopperGbps = 18 * 20.6, kAmpereGbps = 12 * 20, kBlackwellGbps = 18 * 40.1;

NcclTopology h100(int64_t nodes, int64_t per_node = 8) {
  return {.compute_capability = 90,
          .ranks = nodes * per_node,
          .nodes = nodes,
          .nvls = true,
          .gpu_gbps = kHopperGbps,
          .nics = per_node,
          .nic_gbps = 50};
}

NcclTopology a100(int64_t nodes, int64_t nics = 8, double nic_gbps = 25) {
  return {.compute_capability = 80,
          .ranks = nodes * 8,
          .nodes = nodes,
          .gpu_gbps = kAmpereGbps,
          .nics = nics,
          .nic_gbps = nic_gbps};
}

NcclTopology b200(int64_t nodes) {
  return {.compute_capability = 100,
          .ranks = nodes * 8,
          .nodes = nodes,
          .nvls = true,
          .gpu_gbps = kBlackwellGbps,
          .nics = 8,
          .nic_gbps = 50};
}

void expect_channels(const NcclChannels& found, int64_t count, double in_node, double across) {
  EXPECT_EQ(found.count, count);
  EXPECT_DOUBLE_EQ(found.in_node_gbps, in_node);
  EXPECT_DOUBLE_EQ(found.across_gbps, across);
}

// NVIDIA/nccl issue 1197 prints the graphs of 8 x H100: rings and trees of 12 channels at 30, NVLS
// of 8 at 40. The search: six rings at 60 fill 360 of 370.8; being faster than 50, each is split.
// NVLS: (8 + 1) x 40 = 360 fits a GPU's links, 9 x 50 does not.
TEST(NcclChannels, OfEightH100AreThoseThatNcclPrints) {
  expect_channels(nccl_channels(NcclPattern::kRing, h100(1)), 12, 30, 30);
  expect_channels(nccl_channels(NcclPattern::kTree, h100(1)), 12, 30, 30);
  expect_channels(nccl_channels(NcclPattern::kNvls, h100(1)), 8, 40, 40);
}

// Six rings at 40 fill 240; each is split.
TEST(NcclChannels, OfEightA100AreTwelveAtTwentyAndNoNvls) {
  expect_channels(nccl_channels(NcclPattern::kRing, a100(1)), 12, 20, 20);
  EXPECT_EQ(nccl_channels(NcclPattern::kNvls, a100(1)).count, 0);
}

// Eight rings at 90 fill 720 of 721.8, split; NVLS (8 + 1) x 80 = 720.
TEST(NcclChannels, OfEightB200) {
  expect_channels(nccl_channels(NcclPattern::kRing, b200(1)), 16, 45, 45);
  expect_channels(nccl_channels(NcclPattern::kNvls, b200(1)), 8, 80, 80);
}

// A ring of 48 for each 400 Gb/s NIC: 8 x 48 x 7/8 = 336 of the links. NVLS: 9 x 40 fits, 9 x 42
// does not; then the network part is raised to 48.
TEST(NcclChannels, AcrossH100MachinesAreOneForEachNic) {
  expect_channels(nccl_channels(NcclPattern::kRing, h100(4)), 8, 48, 48);
  expect_channels(nccl_channels(NcclPattern::kNvls, h100(4)), 8, 40, 48);
}

// Four 100 Gb/s NICs: four channels at 12, and trees may be twice as fast inside the machine.
TEST(NcclChannels, AcrossA100MachinesWithFourNics) {
  expect_channels(nccl_channels(NcclPattern::kRing, a100(2, 4, 12.5)), 4, 12, 12);
  expect_channels(nccl_channels(NcclPattern::kTree, a100(2, 4, 12.5)), 4, 24, 12);
}

// One ring at 48 is split once, since one channel alone would not keep a NIC busy.
TEST(NcclChannels, OfOneRankOnEachMachineAreTwo) {
  expect_channels(nccl_channels(NcclPattern::kRing, h100(16, 1)), 2, 24, 24);
}

struct Expected {
  NcclAlgorithm algorithm;
  NcclProtocol protocol;
  double us;
};

void expect_choice(CollectiveKind kind,
                   const NcclTopology& topology,
                   int64_t bytes,
                   const Expected& expected) {
  const NcclOption choice = nccl_choice(kind, topology, bytes);
  EXPECT_EQ(to_string(choice.algorithm), to_string(expected.algorithm)) << bytes;
  EXPECT_EQ(to_string(choice.protocol), to_string(expected.protocol)) << bytes;
  EXPECT_NEAR(nccl_belief(choice, kind, topology, bytes).us() / expected.us, 1, 2e-3) << bytes;
}

// Ring, LL: 6.6 + 14 x 0.6 us, and 1 MiB at 141 GB/s x 8/14. From 2 MiB NVLS: 25 us, and 2 MiB at
// 8 x 40 x 0.85 x 7/8 x 2 = 476 GB/s x 8/14.
TEST(NcclChoice, OfEightH100GoesFromRingToNvlsAtTwoMebibytes) {
  expect_choice(CollectiveKind::kAllReduce, h100(1), kMiB, {kRing, kLl, 28.01});
  expect_choice(CollectiveKind::kAllReduce, h100(1), 2 * kMiB, {kNvls, kSimple, 32.71});
  expect_choice(CollectiveKind::kAllReduce, h100(1), 8 * kGiB, {kNvls, kSimple, 31605.6});
}

// Ring, LL128: 14 + 14 x 1.9 us, 4 MiB at 0.92 x 240 x 8/14 = 126.2 GB/s. Simple: 8.4 + 14 x 3.4,
// 8 GiB at 240 x 8/14.
TEST(NcclChoice, OfEightA100GoesFromLl128ToSimple) {
  expect_choice(CollectiveKind::kAllReduce, a100(1), 4 * kMiB, {kRing, kLl128, 73.84});
  expect_choice(CollectiveKind::kAllReduce, a100(1), 8 * kGiB, {kRing, kSimple, 62690.9});
}

// 360 GB/s x 8/7 for what every rank gathers; 8.4 + 7 x 3.4 us.
TEST(NcclChoice, GathersTakeTheRingEvenWithNvls) {
  expect_choice(CollectiveKind::kAllGather, h100(1), kGiB, {kRing, kSimple, 2642.0});
}

// One node of NVSwitch has equal channels: one hop, 8.4 + 3.4 us, and 1 GiB at 12 x 20 GB/s.
// NVIDIA/nccl issues 1197 (8 x H100) and 307 (PCIe) print sameChannels 1 for one node.
TEST(NcclChoice, OfARootInOneNodeWaitsForOneHop) {
  for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
    expect_choice(kind, a100(1), kGiB, {kRing, kSimple, 11.8 + 4473.9});
  }
}

// 16 machines, four 12.5 GB/s NICs: four channels at 12 that differ (sameChannels 0, as NVIDIA/nccl
// issue 601 prints it for four NICs). 64 MiB, LL128: 14 + 128 x 4 us, 0.92 x 48 GB/s; Simple would
// be 8.4 + 128 x 14 + 1398.1. 1 GiB takes Simple: 22369.6 beside 526 + 24314.8.
TEST(NcclChoice, OfARootAcrossMachinesWaitsForEveryRank) {
  for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
    expect_choice(kind, a100(16, 4, 12.5), 64 * kMiB, {kRing, kLl128, 526 + 1519.7});
    expect_choice(kind, a100(16, 4, 12.5), kGiB, {kRing, kSimple, 1800.4 + 22369.6});
    expect_choice(kind, a100(16, 4, 12.5), 8, {kRing, kLl, 6.6 + 128 * 2.7});
  }
}

// All go through the one NIC, or each machine has one rank: one hop of the network.
TEST(NcclChoice, OfARootAcrossMachinesOfOneNicOrOneRankWaitsForOneHop) {
  for (const NcclTopology& topology : {a100(16, 1, 12.5), h100(16, 1)}) {
    expect_choice(CollectiveKind::kBroadcast, topology, 8, {kRing, kLl, 6.6 + 2.7});
  }
}

// Four H100: NVLS reaches (5 x 60 fits) 4 x 60 x 0.85 x 3/4 x 2 = 306 GB/s, the ring 360. Five:
// 408.
TEST(NcclChoice, OfFourH100IsTheRingAndOfFiveNvls) {
  EXPECT_EQ(nccl_choice(CollectiveKind::kAllReduce, h100(1, 4), kGiB).algorithm, kRing);
  EXPECT_EQ(nccl_choice(CollectiveKind::kAllReduce, h100(1, 5), kGiB).algorithm, kNvls);
}

// Eight machines: 25 + 2 x 3 x 20.9 us, 64 MiB at 8 x 45.5 (the ceiling of a channel) x 64/126.
TEST(NcclChoice, OfEightMachinesIsTheNvlsTree) {
  expect_choice(CollectiveKind::kAllReduce, h100(8), 64 * kMiB, {kNvlsTree, kSimple, 513.4});
}

// Two machines: both directions of the NICs work for one tree, to the ceiling of 57.7 a channel.
TEST(NcclChoice, OfTwoMachinesReachesTheNvlsTreesCeiling) {
  const NcclOption choice = nccl_choice(CollectiveKind::kAllReduce, h100(2), 8 * kGiB);
  EXPECT_EQ(choice.algorithm, kNvlsTree);
  EXPECT_NEAR(choice.gbps * 2 * 15 / 16, 8 * 57.7, 0.1);
}

// Tree: 6.8 + 2 x (7 x 0.6 + 1 x 5) us for nothing.
TEST(NcclChoice, OfLittleAcrossMachinesIsATreeWithLl) {
  expect_choice(CollectiveKind::kAllReduce, h100(2), 8, {kTree, kLl, 25.2});
}

// SHARP: NVLS in the machine, the network's switches between: 25 + 18 us, 8 x 48 GB/s.
TEST(NcclChoice, WithSharpIsNvlsAcrossMachines) {
  NcclTopology topology = h100(8);
  topology.collnet = true;
  const NcclOption choice = nccl_choice(CollectiveKind::kAllReduce, topology, 8 * kGiB);
  EXPECT_EQ(choice.algorithm, kNvls);
  EXPECT_DOUBLE_EQ(choice.latency_us, 43);
  EXPECT_NEAR(choice.gbps * 2 * 63 / 64, 384, 1e-6);
}

// PAT: 8 us + 7 x 14 / 3.5 + 128 x 2.8 us, and 16 MiB at 0.75 x 48 GB/s.
TEST(NcclChoice, GathersOfOneRankOnEachOfManyMachinesTakePat) {
  expect_choice(CollectiveKind::kAllGather, h100(128, 1), 16 * kMiB, {kPat, kSimple, 860.4});
}

// (29 + 1) x 24 GB/s fit the links of a GPU and move most; but 32 heads, the most there can be, fit
// at 20. The network takes twice as much, 40 of a NIC's 50.
TEST(NcclChannels, OfNvlsBetweenRacksHaveTheMostHeads) {
  const NcclTopology racks{.compute_capability = 100,
                           .ranks = 144,
                           .nodes = 2,
                           .nvls = true,
                           .gpu_gbps = kBlackwellGbps,
                           .nics = 72,
                           .nic_gbps = 50};
  expect_channels(nccl_channels(NcclPattern::kNvls, racks), 32, 20, 40);
}

bool has_ll128(const NcclTopology& topology) {
  const auto options = nccl_options(CollectiveKind::kAllReduce, topology);
  return std::any_of(options.begin(), options.end(), [](const NcclOption& option) {
    return option.protocol == kLl128;
  });
}

// NCCL_LL128_C2C came with 2.27.3.
TEST(NcclOptions, HaveLl128OverTheNicsOfACpuSince2_27_3) {
  NcclTopology racks = b200(2);
  racks.nics_behind_cpu = true;
  EXPECT_TRUE(has_ll128(racks));
  racks.version = 22706;
  EXPECT_TRUE(has_ll128(racks));
  racks.version = 22602;
  EXPECT_FALSE(has_ll128(racks));
  racks.nics_behind_cpu = false;
  EXPECT_TRUE(has_ll128(racks));
}

TEST(NcclOptions, AreThoseOfTheOnlyAlgorithm) {
  NcclTopology topology = h100(1);
  topology.only = kNvls;
  EXPECT_EQ(nccl_choice(CollectiveKind::kAllReduce, topology, kKiB).algorithm, kNvls);
  EXPECT_TRUE(nccl_options(CollectiveKind::kBroadcast, topology).empty());
}

TEST(NcclChoice, OverPcieHasNoLl128) {
  NcclTopology topology = a100(1);
  topology.nvlink = false;
  topology.gpu_gbps = 24;
  const std::vector<NcclOption> options = nccl_options(CollectiveKind::kAllReduce, topology);
  ASSERT_FALSE(options.empty());
  for (const NcclOption& option : options) {
    EXPECT_NE(to_string(option.protocol), "ll128");
  }
}

// floor(log2(1 MiB / 64)) = 14.
TEST(NcclTables, TreesAreCorrectedBySize) {
  const NcclTreeCorrection& correction = nccl_tables().tree_correction;
  EXPECT_DOUBLE_EQ(correction.at(kTree, kLl, kMiB), 0.5);
  EXPECT_DOUBLE_EQ(correction.at(kTree, kLl128, kMiB), 0.6);
  EXPECT_DOUBLE_EQ(correction.at(kTree, kSimple, 63), 1);
  EXPECT_DOUBLE_EQ(correction.at(kNvlsTree, kSimple, kGiB), 1);
}

// tuning.cc: a tree with logSize < 23, an NVLS tree with logSize < 24; 512 MiB is 2^23 x 64.
TEST(NcclTables, TheLastCorrectionIsOfNvlsTreesAlone) {
  const NcclTreeCorrection& correction = nccl_tables().tree_correction;
  EXPECT_DOUBLE_EQ(correction.at(kTree, kSimple, 512 * kMiB - 1), 0.9);
  EXPECT_DOUBLE_EQ(correction.at(kTree, kSimple, 512 * kMiB), 1);
  EXPECT_DOUBLE_EQ(correction.at(kNvlsTree, kSimple, kGiB - 1), 0.9);
}

// 64 machines of 8 A100, one 200 Gb/s card each: a tree with Simple.
TEST(NcclChoice, OfATreeDoesNotGetFasterAtAGibibyte) {
  const NcclTopology topology = a100(64);
  const auto us = [&](int64_t bytes) {
    const NcclOption choice = nccl_choice(CollectiveKind::kAllReduce, topology, bytes);
    EXPECT_EQ(to_string(choice.algorithm), "tree") << bytes;
    EXPECT_EQ(to_string(choice.protocol), "simple") << bytes;
    return nccl_belief(choice, CollectiveKind::kAllReduce, topology, bytes).us();
  };
  EXPECT_LT(us(1023 * kMiB), us(kGiB));
  EXPECT_GT(us(512 * kMiB), 0);
}

}  // namespace
}  // namespace estimator
