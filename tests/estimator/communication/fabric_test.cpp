#include "estimator/communication/fabric.h"

#include <gtest/gtest.h>

#include <tuple>

#include "estimator/profile/program_record.h"
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
// in each of two.
TEST(Fabric, RacksHoldEquallyManyMachinesOfTheJob) {
  const auto of_domain = [](int64_t nodes) { return fabric_of(racks_plan(nodes)).domain_gpus; };
  EXPECT_EQ(of_domain(16), 64);
  EXPECT_EQ(of_domain(17), 68);
  EXPECT_EQ(of_domain(18), 72);
  EXPECT_EQ(of_domain(64), 64);
  EXPECT_EQ(of_domain(20), 40);
  EXPECT_EQ(of_domain(50), 40);
}

// 19 machines are 9 and 10; 37 are 12, 12 and 13.
TEST(Fabric, RacksHoldMachinesThatCannotBeDividedAsEvenlyAsCanBe) {
  const Fabric two = fabric_of(racks_plan(19));
  EXPECT_EQ(two.domain_gpus, 36);
  EXPECT_TRUE(two.same_domain(0, 35));
  EXPECT_FALSE(two.same_domain(35, 36));
  EXPECT_TRUE(two.same_domain(36, 75));
  const Fabric three = fabric_of(racks_plan(37));
  EXPECT_EQ(three.domain_gpus, 48);
  EXPECT_FALSE(three.same_domain(47, 48));
  EXPECT_FALSE(three.same_domain(95, 96));
  EXPECT_TRUE(three.same_domain(96, 147));
  EXPECT_EQ(fabric_of(racks_plan(307)).domain_gpus, 68);  // 17 or 18
}

TEST(Placement, OnUnequalRacksIsThatOfTheSmallest) {
  const Plan plan = racks_plan(19);
  const Fabric fabric = fabric_of(plan);
  const ParallelLayout layout(plan.parallelism);
  EXPECT_EQ(place(layout.group(GroupKind::kWorld, 0), fabric).ranks_per_domain, 36);
  const auto known = [&](int64_t first, int64_t count, int64_t stride) {
    return place({.first = first, .spans = {{count, stride}}, .place_is_known = true}, fabric)
        .ranks_per_domain;
  };
  EXPECT_EQ(known(0, 19, 4), 9);
  EXPECT_EQ(known(36, 10, 4), 10);
  EXPECT_EQ(known(32, 2, 4), 1);
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

RankGroup spanned(std::vector<RankSpan> spans) { return {.spans = std::move(spans)}; }

TEST(Placement, OfSpansThatFillPartOfAnDomain) {
  Fabric fabric;
  fabric.domain_gpus = 8;
  EXPECT_EQ(place(spanned({{4, 2}}), fabric).ranks_per_domain, 4);
  EXPECT_EQ(place(spanned({{8, 2}}), fabric).ranks_per_domain, 4);
  EXPECT_EQ(place(spanned({{2, 2}, {4, 4}}), fabric).ranks_per_domain, 4);
  EXPECT_EQ(place(spanned({{5, 16}}), fabric).ranks_per_domain, 1);
}

TEST(Placement, OfAGroupThatStraddlesCountsItsSmallestPiece) {
  Fabric fabric;
  fabric.domain_gpus = 8;
  EXPECT_EQ(place(spanned({{6, 1}}), fabric).ranks_per_domain,
            2);  // ranks 6-11: two of six on the first
  EXPECT_EQ(place(spanned({{6, 1}}), fabric).domains(), 3);
}

Plan staged_plan(int64_t nodes, int64_t gpus, Json parallelism) {
  return small_plan({{"cluster", {{"nodes", nodes}, {"gpus_per_node", gpus}}},
                     {"model", {{"num_layers", 24}}},
                     {"parallelism", std::move(parallelism)},
                     {"training", {{"global_batch_size", 24}}}});
}

GroupPlacement placed_ends(const Plan& plan) {
  return place(ParallelLayout(plan.parallelism).group(GroupKind::kEmbedding, 0), fabric_of(plan));
}

TEST(Placement, OfTheFirstAndTheLastStageOfOneMachineIsInside) {
  EXPECT_EQ(placed_ends(staged_plan(1, 4, {{"pipeline", 4}})).domains(), 1);
  EXPECT_EQ(placed_ends(staged_plan(1, 8, {{"pipeline", 8}})).domains(), 1);
  EXPECT_EQ(placed_ends(staged_plan(1, 6, {{"pipeline", 6}})).domains(), 1);
  EXPECT_EQ(placed_ends(staged_plan(1, 8, {{"tensor", 2}, {"pipeline", 4}})).domains(), 1);
  EXPECT_EQ(placed_ends(staged_plan(4, 4, {{"pipeline", 4}})).domains(), 2);
}

// Pipelines of six neighbouring ranks on machines of eight: ranks 6 and 10 have a border between
// them.
TEST(Placement, OfTheFirstAndTheLastStageIsThatOfThePipelineThatAMachineCuts) {
  const Json parallelism = {{"tensor", 2}, {"pipeline", 3}, {"use_tp_pp_dp_mapping", true}};
  EXPECT_EQ(placed_ends(staged_plan(3, 8, parallelism)).domains(), 2);
  EXPECT_EQ(placed_ends(staged_plan(4, 6, parallelism)).domains(), 1);
}

/// Domains of the group of `count` ranks from `first` on, every `stride`th, on machines of eight.
int64_t domains_of_known(int64_t first, int64_t count, int64_t stride) {
  Fabric fabric;
  fabric.domain_gpus = 8;
  return place({.first = first, .spans = {{count, stride}}, .place_is_known = true}, fabric)
      .domains();
}

TEST(Placement, OfAGroupWhosePlaceIsKnownIsItsOwn) {
  EXPECT_EQ(domains_of_known(0, 2, 3), 1);
  EXPECT_EQ(domains_of_known(6, 2, 4), 2);
  EXPECT_EQ(domains_of_known(0, 6, 1), 1);
  EXPECT_EQ(domains_of_known(6, 6, 1), 3);   // two of six on the first machine
  EXPECT_EQ(domains_of_known(4, 12, 1), 3);  // four, eight: as if each held four
  EXPECT_EQ(domains_of_known(1, 4, 16), 4);
  EXPECT_EQ(domains_of_known(0, 3, 6), 3);  // 0 and 6, 12: as if each held one
}

TEST(Placement, OfGroupsOfAProgramIsKnownWhereTheirRanksAre) {
  CommunicatorRecord record{.name = "", .size = 2, .rank = 0, .first_rank = 3, .rank_stride = 4};
  EXPECT_TRUE(group_of(record).place_is_known);
  record.first_rank = -1;
  EXPECT_FALSE(group_of(record).place_is_known);
}

// Every layout against its members, one by one: no group has fewer ranks in a domain than said, and
// groups that no border cuts are inside.
TEST(Placement, OfEveryKindIsNeverBetterThanTheMembersAre) {
  for (const bool mapping : {false, true}) {
    for (const auto& [nodes, tensor, pipeline] :
         {std::tuple{3, 2, 3}, {3, 2, 4}, {3, 1, 6}, {3, 1, 12}, {2, 2, 8}, {1, 1, 8}}) {
      const Plan plan = staged_plan(
          nodes,
          8,
          {{"tensor", tensor}, {"pipeline", pipeline}, {"use_tp_pp_dp_mapping", mapping}});
      const Fabric fabric = fabric_of(plan);
      const ParallelLayout layout(plan.parallelism);
      for (const auto& [kind, name] : enum_names(GroupKind{})) {
        bool all_inside = true;
        for (int64_t rank = 0; rank < layout.world_size(); ++rank) {
          const RankGroup group = layout.group(kind, rank);
          all_inside =
              all_inside && fabric.same_domain(group.first, group.member(group.size() - 1));
        }
        EXPECT_EQ(place(layout.group(kind, 0), fabric).domains() == 1, all_inside)
            << name << " of " << nodes << " machines, tp " << tensor << ", pp " << pipeline;
      }
    }
  }
}

Distance farthest_stages(const Plan& plan, int64_t from, int64_t to) {
  const RankGroup pipeline = ParallelLayout(plan.parallelism).group(GroupKind::kPipeline, 0);
  return farthest_pair(pipeline.spans.front(), from, to, fabric_of(plan));
}

// Ranks 7 and 8 are stages 1 and 2 of the second pipeline of six.
TEST(FarthestPair, IsThatOfThePipelineThatAMachineCuts) {
  const Json inside = {{"pipeline", 6}, {"use_tp_pp_dp_mapping", true}};
  EXPECT_EQ(farthest_stages(staged_plan(3, 8, inside), 0, 1), Distance::kInDomain);
  EXPECT_EQ(farthest_stages(staged_plan(3, 8, inside), 1, 2), Distance::kInPod);
  EXPECT_EQ(farthest_stages(staged_plan(3, 8, inside), 2, 1), Distance::kInPod);
  for (int64_t stage = 0; stage < 5; ++stage) {
    EXPECT_EQ(farthest_stages(staged_plan(4, 6, inside), stage, stage + 1), Distance::kInDomain);
  }
}

// Every pair of stages of every layout, against all its ranks.
TEST(FarthestPair, IsTheFarthestOfAllRanks) {
  for (const bool mapping : {false, true}) {
    for (const auto& [nodes, tensor, pipeline] :
         {std::tuple{3, 2, 3}, {3, 1, 4}, {3, 1, 6}, {3, 2, 12}, {2, 1, 8}, {6, 4, 12}}) {
      Plan plan = staged_plan(
          nodes,
          8,
          {{"tensor", tensor}, {"pipeline", pipeline}, {"use_tp_pp_dp_mapping", mapping}});
      plan.cluster.nodes_per_pod = 2;
      const Fabric fabric = fabric_of(plan);
      const ParallelLayout layout(plan.parallelism);
      for (int64_t from = 0; from < pipeline; ++from) {
        const int64_t to = (from + 1) % pipeline;
        Distance farthest = Distance::kInDomain;
        for (int64_t rank = 0; rank < layout.world_size(); ++rank) {
          const RankGroup group = layout.group(GroupKind::kPipeline, rank);
          farthest = std::max(farthest, fabric.distance(group.member(from), group.member(to)));
        }
        EXPECT_EQ(farthest_stages(plan, from, to), farthest)
            << nodes << " machines, tp " << tensor << ", pp " << pipeline << ", stage " << from;
      }
    }
  }
}

}  // namespace
}  // namespace estimator
