#include "estimator/plan/parallel_layout.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

/// A layout of any degrees, whether the shard can be built or not.
Plan plan_of(int64_t tensor,
             int64_t context,
             int64_t data,
             int64_t pipeline,
             int64_t expert = 1,
             int64_t expert_tensor = 1) {
  Plan plan;
  plan.parallelism.tensor = tensor;
  plan.parallelism.context = context;
  plan.parallelism.data = data;
  plan.parallelism.pipeline = pipeline;
  plan.parallelism.expert = expert;
  plan.parallelism.expert_tensor = expert_tensor;
  return plan;
}

/// The same with stages inside of data ranks.
Plan with_data_outermost(Plan plan) {
  plan.parallelism.use_tp_pp_dp_mapping = true;
  return plan;
}

const std::vector<Plan> kPlans = {with_data_outermost(plan_of(2, 1, 3, 4, 2)),
                                  with_data_outermost(plan_of(2, 3, 4, 2, 3, 2)),
                                  with_data_outermost(plan_of(4, 1, 2, 3, 1, 4)),
                                  plan_of(1, 1, 1, 1),
                                  plan_of(2, 1, 3, 4),
                                  plan_of(2, 3, 4, 2, 6, 2),
                                  plan_of(2, 3, 4, 2, 8),
                                  plan_of(4, 2, 2, 1, 2, 4),
                                  plan_of(4, 1, 2, 2, 2, 2),
                                  plan_of(1, 1, 7, 3)};

TEST(ParallelLayout, RankAndCoordinateAreInverse) {
  for (const Plan& plan : kPlans) {
    const ParallelLayout layout(plan.parallelism);
    std::set<int64_t> ranks;
    for (int64_t rank = 0; rank < layout.world_size(); ++rank) {
      EXPECT_EQ(layout.rank(layout.coordinate(rank)), rank);
      ranks.insert(layout.rank(layout.coordinate(rank)));
    }
    EXPECT_EQ(static_cast<int64_t>(ranks.size()), layout.world_size());
  }
}

// Megatron-LM's "tp-cp-ep-dp-pp": rank 13 of TP 2, CP 3, DP 4, PP 2 is 1 + 2 (0 + 3 (2 + 4 x 0)).
TEST(ParallelLayout, TensorRanksAreNextToEachOtherAndStagesFarthestApart) {
  const ParallelLayout layout(plan_of(2, 3, 4, 2).parallelism);
  const RankCoordinate at = layout.coordinate(13);
  EXPECT_EQ(at.tensor, 1);
  EXPECT_EQ(at.context, 0);
  EXPECT_EQ(at.data, 2);
  EXPECT_EQ(at.pipeline, 0);
  EXPECT_EQ(layout.coordinate(24).pipeline, 1);
}

// Megatron-LM's "tp-cp-ep-pp-dp" (--use-tp-pp-dp-mapping): 13 is 1 + 2 (0 + 3 (0 + 2 x 1)).
TEST(ParallelLayout, StagesAreInsideOfDataRanksWhereThePlanSaysSo) {
  const ParallelLayout layout(with_data_outermost(plan_of(2, 3, 4, 2)).parallelism);
  const RankCoordinate at = layout.coordinate(13);
  EXPECT_EQ(at.tensor, 1);
  EXPECT_EQ(at.context, 0);
  EXPECT_EQ(at.data, 1);
  EXPECT_EQ(at.pipeline, 0);
  EXPECT_EQ(layout.coordinate(6).pipeline, 1);
  EXPECT_EQ(layout.group(GroupKind::kPipeline, 13).spans, (std::vector<RankSpan>{{2, 6}}));
  EXPECT_EQ(layout.group(GroupKind::kData, 13).spans, (std::vector<RankSpan>{{4, 12}}));
}

// Tensor 2 x context 2 x data 6 in 3 instances: the 24 ranks of a stage are cut into 8, 8 and 8,
// for experts (4 x 1 of them together: 6 replicas) as for the rest
// (intra_partial_data_parallel_size of parallel_state.py in Megatron-LM's core).
TEST(ParallelLayout, InstancesOfTheOptimizerAreConsecutiveParts) {
  Plan plan = plan_of(2, 2, 6, 2, 4, 1);
  plan.parallelism.num_distributed_optimizer_instances = 3;
  const ParallelLayout layout(plan.parallelism);
  const auto members = [&](GroupKind kind) {
    const RankGroup group = layout.group(kind, 24 + 13);
    std::vector<int64_t> ranks;
    for (int64_t i = 0; i < group.size(); ++i) ranks.push_back(group.member(i) - 24);
    return ranks;
  };
  EXPECT_EQ(members(GroupKind::kDataContext), (std::vector<int64_t>{9, 11, 13, 15}));
  EXPECT_EQ(members(GroupKind::kExpertData), (std::vector<int64_t>{9, 13}));
  EXPECT_EQ(members(GroupKind::kInstances), (std::vector<int64_t>{5, 13, 21}));
}

/// The axes along which two ranks of a group may differ.
bool belong_together(GroupKind kind,
                     const RankCoordinate& a,
                     const RankCoordinate& b,
                     int64_t last_stage) {
  const bool tensor = a.tensor == b.tensor, context = a.context == b.context,
             data = a.data == b.data, pipeline = a.pipeline == b.pipeline;
  const bool expert_tensor = a.expert_tensor == b.expert_tensor;
  const bool expert_data = a.expert_data == b.expert_data;
  const auto at_an_end = [&](const RankCoordinate& c) {
    return c.pipeline == 0 || c.pipeline == last_stage;
  };
  switch (kind) {
    case GroupKind::kWorld:
      return true;
    case GroupKind::kTensor:
      return context && data && pipeline;
    case GroupKind::kContext:
      return tensor && data && pipeline;
    case GroupKind::kData:
      return tensor && context && pipeline;
    case GroupKind::kPipeline:
      return tensor && context && data;
    case GroupKind::kDataContext:
      return tensor && pipeline;
    case GroupKind::kTensorContext:
      return data && pipeline;
    case GroupKind::kModel:
      return context && data;
    case GroupKind::kEmbedding:
      return tensor && context && data && at_an_end(a) && at_an_end(b);
    case GroupKind::kExpert:
      return expert_tensor && pipeline && expert_data;
    case GroupKind::kExpertData:
      return expert_tensor && pipeline && a.expert == b.expert;
    case GroupKind::kExpertTensor:
      return a.expert == b.expert && pipeline && expert_data;
    case GroupKind::kExpertModel:
      return pipeline && expert_data;
    case GroupKind::kStage:
      return pipeline;
    case GroupKind::kInstances:
      return a == b;  // these plans have one instance
  }
  return false;
}

TEST(ParallelLayout, GroupsAreTheRanksThatDifferAlongTheirAxesOnly) {
  for (const Plan& plan : kPlans) {
    const ParallelLayout layout(plan.parallelism);
    const int64_t last_stage = plan.parallelism.pipeline - 1;
    for (const auto& [kind, name] : enum_names(GroupKind{})) {
      for (int64_t rank = 0; rank < layout.world_size(); ++rank) {
        const RankCoordinate at = layout.coordinate(rank);
        if (kind == GroupKind::kEmbedding && at.pipeline != 0 && at.pipeline != last_stage)
          continue;
        std::vector<int64_t> expected;
        for (int64_t other = 0; other < layout.world_size(); ++other) {
          if (belong_together(kind, at, layout.coordinate(other), last_stage))
            expected.push_back(other);
        }
        const RankGroup group = layout.group(kind, rank);
        std::vector<int64_t> members;
        for (int64_t i = 0; i < group.size(); ++i) {
          members.push_back(group.member(i));
          EXPECT_EQ(group.index_of(members.back()), i) << name;
        }
        EXPECT_EQ(members, expected) << name << " group of rank " << rank;
      }
    }
  }
}

TEST(ParallelLayout, NonMembersHaveNoIndex) {
  const ParallelLayout layout(plan_of(2, 3, 4, 2).parallelism);
  const RankGroup data = layout.group(GroupKind::kData, 1);  // 1, 7, 13, 19
  EXPECT_EQ(data.index_of(0), -1);
  EXPECT_EQ(data.index_of(2), -1);
  EXPECT_EQ(data.index_of(25), -1);
}

TEST(ParallelLayout, AMiddleStageIsInNoEmbeddingGroup) {
  const ParallelLayout layout(plan_of(1, 1, 1, 4).parallelism);
  const RankGroup group = layout.group(GroupKind::kEmbedding, 1);
  EXPECT_EQ(group.size(), 2);
  EXPECT_EQ(group.index_of(1), -1);
  EXPECT_EQ(group.index_of(3), 1);
}

TEST(ParallelLayout, HandlesAMillionRanksWithoutListingThem) {
  const ParallelLayout layout(plan_of(8, 1, 6250, 20).parallelism);
  ASSERT_EQ(layout.world_size(), 1'000'000);
  for (int64_t rank = 0; rank < 1'000'000; ++rank) {
    ASSERT_EQ(layout.rank(layout.coordinate(rank)), rank);
  }
  const RankGroup data = layout.group(GroupKind::kDataContext, 999'999);
  EXPECT_EQ(data.size(), 6250);
  EXPECT_LE(data.spans.size(), 2u);
  EXPECT_EQ(data.member(6249), 999'999);
}

TEST(ParallelLayout, RefusesARankOutsideTheWorld) {
  const ParallelLayout layout(plan_of(2, 1, 1, 1).parallelism);
  EXPECT_THROW(layout.coordinate(2), std::logic_error);
  EXPECT_THROW(layout.coordinate(-1), std::logic_error);
  EXPECT_THROW(layout.group(GroupKind::kTensor, 0).member(2), std::logic_error);
}

}  // namespace
}  // namespace estimator
