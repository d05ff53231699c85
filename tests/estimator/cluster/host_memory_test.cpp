#include "estimator/cluster/offload_memory.h"

#include <gtest/gtest.h>

#include "estimator/cluster/estimate_cluster.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

/// Tensor 2 x pipeline 4 x data 1 on 8 GPUs, `gpus_per_node` in a machine. Stage s keeps s + 1
/// bytes on the host.
ClusterEstimate estimate_of(int64_t gpus_per_node) {
  const Plan plan =
      small_plan({{"cluster", {{"nodes", 8 / gpus_per_node}, {"gpus_per_node", gpus_per_node}}},
                  {"parallelism", {{"tensor", 2}, {"pipeline", 4}, {"zero_stage", 1}}},
                  {"training", {{"optimizer_cpu_offload", true}}}});
  std::vector<RankProfile> profiles = profiles_of(plan);
  for (RankProfile& profile : profiles) {
    profile.host_memory.emplace().total_bytes = profile.coordinate.pipeline + 1;
  }
  return estimate_cluster(plan, profiles);
}

TEST(HostMemory, IsOfTheLargestRankAndOfTheLargestMachine) {
  const ClusterEstimate one = estimate_of(8);
  EXPECT_EQ(one.host_memory->rank_bytes, 4);
  EXPECT_EQ(one.host_memory->node_bytes, 2 * (1 + 2 + 3 + 4));
  const ClusterEstimate two = estimate_of(4);  // stages 0 and 1, stages 2 and 3
  EXPECT_EQ(two.host_memory->rank_bytes, 4);
  EXPECT_EQ(two.host_memory->node_bytes, 2 * (3 + 4));
  EXPECT_EQ(two.rank_classes.back().host_bytes, 4);
}

TEST(HostMemory, IsNotNamedWhereNothingIsOffloaded) {
  const Plan plan = small_plan();
  EXPECT_FALSE(estimate_cluster(plan, profiles_of(plan)).host_memory);
}

}  // namespace
}  // namespace estimator
