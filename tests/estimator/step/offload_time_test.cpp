#include "estimator/step/offload_time.h"

#include <gtest/gtest.h>

#include "estimator/step/stage_time.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

// A piece of 100 parameters, 400 bytes, takes 1 s there, 4 s to update and 2 s back.
constexpr HostShare kHost{.to_host_bytes_per_second = 400,
                          .to_device_bytes_per_second = 200,
                          .parameters_per_second = 25};

TEST(OffloadTime, IsTheSumWithoutOverlap) {
  const OffloadTime time = offload_time({100, 100}, kHost, /*overlap=*/false);
  EXPECT_DOUBLE_EQ(time.to_host_seconds, 2);
  EXPECT_DOUBLE_EQ(time.update_seconds, 8);
  EXPECT_DOUBLE_EQ(time.to_device_seconds, 4);
  EXPECT_DOUBLE_EQ(time.total_seconds, 14);
}

TEST(OffloadTime, WithOverlapIsTheSlowestPartAndTheEnds) {
  // There until 1; updated until 5 and 9; back until 7 and 11.
  EXPECT_DOUBLE_EQ(offload_time({100, 100}, kHost, /*overlap=*/true).total_seconds, 11);
  // There until 1 and 5; updated until 5 and 21; back until 7 and 29.
  EXPECT_DOUBLE_EQ(offload_time({100, 400}, kHost, /*overlap=*/true).total_seconds, 29);
  // Slow copies there: until 16 and 32, updated until 20 and 36, back until 38.
  const HostShare slow{.to_host_bytes_per_second = 25,
                       .to_device_bytes_per_second = 200,
                       .parameters_per_second = 25};
  EXPECT_DOUBLE_EQ(offload_time({100, 100}, slow, /*overlap=*/true).total_seconds, 38);
}

TEST(OffloadTime, OfNothingIsNothing) {
  EXPECT_EQ(offload_time({}, kHost, true).total_seconds, 0);
  EXPECT_EQ(offload_time({}, kHost, false).total_seconds, 0);
}

/// On 8 H100 of one machine.
Plan offloading_plan(const Json& changes = Json::object()) {
  Json tree = {{"parallelism", {{"zero_stage", 1}}},
               {"training", {{"optimizer_cpu_offload", true}}}};
  tree.merge_patch(changes);
  return small_plan(tree);
}

TEST(HostShare, IsTheGpusLinkAndAnEqualPartOfTheCpus) {
  const HostShare share =
      host_share(offloading_plan({{"time", {{"cpu_adam_parameters_per_second", 8e9}}}}));
  EXPECT_EQ(share.to_host_bytes_per_second, 55.06e9);
  EXPECT_EQ(share.to_device_bytes_per_second, 55.43e9);
  EXPECT_EQ(share.parameters_per_second, 1e9);
}

OperatorRecord device_adamw() {
  OperatorRecord record = kernels(Direction::kOptimizerStep, 0);
  record.name = "aten::_fused_adamw_";
  record.bytes = 28e9;  // some 10 ms
  record.count = 1;
  return record;
}

double step_end(const Plan& plan, const RankProfile& profile) {
  return stage_time(profile,
                    {.plan = plan,
                     .compute = {.gpu = gpu_of(plan.cluster)},
                     .layout = ParallelLayout(plan.parallelism),
                     .fabric = fabric_of(plan)})
      .step_end.compute_seconds;
}

TEST(StageTime, EndsWithTheHostsPartOfTheOptimizer) {
  const Plan plan = offloading_plan({{"time", {{"cpu_adam_parameters_per_second", 8e9}}}});
  RankProfile profile = profile_of(plan, 0);
  const double before = step_end(plan, profile);
  profile.host_memory.emplace().pieces = {1'000'000'000};  // 4 GB each way, and 1 s
  EXPECT_NEAR(step_end(plan, profile) - before, 4 / 55.06 + 1 + 4 / 55.43, 1e-9);
  // What stays on the GPU is updated in the meantime.
  profile.operators.push_back(device_adamw());
  EXPECT_NEAR(step_end(plan, profile) - before, 4 / 55.06 + 1 + 4 / 55.43, 1e-9);
}

}  // namespace
}  // namespace estimator
