#include "estimator/communication/fabric.h"

#include <gtest/gtest.h>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

TEST(Fabric, OfH100MachinesIsDomainsOfEightWithANicForEach) {
  const Fabric fabric = fabric_of(meta_plan());
  EXPECT_EQ(fabric.domain_gpus, 8);
  EXPECT_EQ(fabric.intra.id, "nvlink4");
  EXPECT_EQ(fabric.inter.id, "ib-ndr-400");
  EXPECT_DOUBLE_EQ(fabric.network_bytes_per_second(), fabric.inter.achieved_bytes_per_second);
  EXPECT_TRUE(fabric.same_domain(8, 15));
  EXPECT_FALSE(fabric.same_domain(7, 8));
}

TEST(Fabric, RanksShareTheNicsOfAMachine) {
  const Fabric fabric = fabric_of(small_plan({{"cluster", {{"nics_per_node", 2}}}}));
  EXPECT_DOUBLE_EQ(fabric.network_bytes_per_second(), fabric.inter.achieved_bytes_per_second / 4);
}

TEST(Fabric, AnNvlinkDomainSpansMachines) {
  const Plan plan =
      small_plan({{"cluster", {{"gpu", "gb200"}, {"nodes", 36}, {"gpus_per_node", 4}}},
                  {"training", {{"global_batch_size", 144}}}});
  EXPECT_EQ(fabric_of(plan).domain_gpus, 72);
}

Plan racks_plan(int64_t nodes, const Json& cluster = Json::object()) {
  Json changes = {{"cluster", {{"gpu", "gb200"}, {"nodes", nodes}, {"gpus_per_node", 4}}},
                  {"training", {{"global_batch_size", 4 * nodes}}}};
  changes["cluster"].merge_patch(cluster);
  return small_plan(changes);
}

// A rack has 18 machines. 16 fill one rack in part; of 64 there are 16 in each of four, of 20 ten
// in each of two; 19 cannot be divided.
TEST(Fabric, RacksHoldEquallyManyMachinesOfTheJob) {
  const auto of_domain = [](int64_t nodes) { return fabric_of(racks_plan(nodes)).domain_gpus; };
  EXPECT_EQ(of_domain(16), 64);
  EXPECT_EQ(of_domain(17), 68);
  EXPECT_EQ(of_domain(18), 72);
  EXPECT_EQ(of_domain(64), 64);
  EXPECT_EQ(of_domain(20), 40);
  EXPECT_EQ(of_domain(19), 4);
}

// gcd(72, 64) is 8, but all 64 are in one rack.
TEST(Placement, OfAWorldThatIsSmallerThanItsDomainIsInside) {
  const Plan plan = racks_plan(16);
  const RankGroup all = ParallelLayout(plan.parallelism).group(GroupKind::kWorld, 0);
  EXPECT_EQ(place(all, fabric_of(plan)).ranks_per_domain, 64);
}

TEST(Placement, OfAWorldThatIsSmallerThanItsPodIsInside) {
  const Plan plan = racks_plan(16, {{"nodes_per_pod", 18}, {"spine_oversubscription", 7}});
  const RankGroup all = ParallelLayout(plan.parallelism).group(GroupKind::kWorld, 0);
  EXPECT_EQ(place(all, fabric_of(plan)).ranks_per_pod, 64);
}

// An HGX board's switches end at its machine, also where a machine has half a board.
TEST(Fabric, AnNvlinkDomainOfABoardEndsAtItsMachine) {
  const Plan plan = small_plan({{"cluster", {{"nodes", 2}, {"gpus_per_node", 4}}}});
  EXPECT_EQ(fabric_of(plan).domain_gpus, 4);
}

TEST(Fabric, AnNvlinkDomainDoesNotSpanMachinesThatAreWiredOtherwise) {
  const Plan plan = small_plan(
      {{"cluster",
        {{"gpu", "gb200"}, {"nodes", 36}, {"gpus_per_node", 4}, {"intra_link", "pcie5x16"}}},
       {"training", {{"global_batch_size", 144}}}});
  EXPECT_EQ(fabric_of(plan).domain_gpus, 4);
}

TEST(Fabric, WithoutNvlsHasSwitchesThatDoNotReduce) {
  EXPECT_TRUE(fabric_of(small_plan()).intra.nvls_bytes_per_second);
  EXPECT_FALSE(fabric_of(small_plan({{"cluster", {{"nvls", false}}}})).intra.nvls_bytes_per_second);
}

TEST(Placement, OfTheMetaLayout) {
  const Fabric fabric = fabric_of(meta_plan());
  const ParallelLayout layout(meta_plan().parallelism);
  const auto placed = [&](GroupKind kind) { return place(layout.group(kind, 0), fabric); };
  EXPECT_EQ(placed(GroupKind::kTensor).ranks_per_domain, 8);
  EXPECT_EQ(placed(GroupKind::kTensor).domains(), 1);
  EXPECT_EQ(placed(GroupKind::kDataContext).ranks_per_domain, 1);
  EXPECT_EQ(placed(GroupKind::kDataContext).domains(), 128);
  EXPECT_EQ(placed(GroupKind::kModel).ranks_per_domain, 8);
  EXPECT_EQ(placed(GroupKind::kModel).domains(), 16);
  EXPECT_EQ(placed(GroupKind::kWorld).domains(), 2048);
}

RankGroup group_of(std::vector<RankSpan> spans) { return {.spans = std::move(spans)}; }

TEST(Placement, OfSpansThatFillPartOfAnDomain) {
  Fabric fabric;
  fabric.domain_gpus = 8;
  EXPECT_EQ(place(group_of({{4, 2}}), fabric).ranks_per_domain, 4);
  EXPECT_EQ(place(group_of({{8, 2}}), fabric).ranks_per_domain, 4);
  EXPECT_EQ(place(group_of({{2, 2}, {4, 4}}), fabric).ranks_per_domain, 4);
  EXPECT_EQ(place(group_of({{5, 16}}), fabric).ranks_per_domain, 1);
}

TEST(Placement, OfAGroupThatStraddlesCountsItsSmallestPiece) {
  Fabric fabric;
  fabric.domain_gpus = 8;
  EXPECT_EQ(place(group_of({{6, 1}}), fabric).ranks_per_domain,
            2);  // ranks 6-11: two of six on the first
  EXPECT_EQ(place(group_of({{6, 1}}), fabric).domains(), 3);
}

}  // namespace
}  // namespace estimator
