#include "estimator/cluster/roofline.h"

#include <gtest/gtest.h>

#include <cmath>

#include "estimator/cluster/estimate_cluster.h"
#include "estimator/cluster/roofline_rows.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

Roofline roofline(const Plan& plan, const std::vector<RankProfile>& profiles) {
  return roofline_of(plan, profiles, estimate_cluster(plan, profiles));
}

OperatorRecord directed_operator(const char* name,
                                 Direction direction,
                                 std::vector<std::vector<int64_t>> shapes,
                                 double flops,
                                 double bytes,
                                 int64_t count) {
  OperatorRecord record;
  record.name = name;
  record.dtype = "BFloat16";
  record.module_kind = "mlp";
  record.direction = direction;
  record.shapes = std::move(shapes);
  record.flops = flops;
  record.bytes = bytes;
  record.count = count;
  return record;
}

/// 100 products of 4096 cubed (0.137 TFLOP, 0.1 GB each), and 10 copies of 1 GB.
RankProfile profile_with_work(const Plan& plan, int64_t rank) {
  RankProfile profile = profile_of(plan, rank, 0, 0);
  profile.operators = {
      directed_operator("aten::mm",
                        Direction::kForward,
                        {{4096, 4096}, {4096, 4096}},
                        2 * std::pow(4096.0, 3),
                        3 * 2 * std::pow(4096.0, 2),
                        100),
      directed_operator("aten::mul_", Direction::kBackward, {{1 << 28}}, 2.7e8, 1e9, 10)};
  return profile;
}

TEST(IntensityClass, ChangesAt10AndOver100FlopsPerByte) {
  EXPECT_EQ(intensity_class(9.9), IntensityClass::kMemoryBound);
  EXPECT_EQ(intensity_class(10), IntensityClass::kBalanced);
  EXPECT_EQ(intensity_class(100), IntensityClass::kBalanced);
  EXPECT_EQ(intensity_class(100.1), IntensityClass::kComputeBound);
}

TEST(Roofline, AddsKernelsUpByOperatorModuleAndPhase) {
  const Plan plan = small_plan();
  const Roofline result = roofline(plan, {profile_with_work(plan, 0)});
  ASSERT_EQ(result.operators.size(), 2u);
  EXPECT_EQ(result.operators[0].name, "mm");  // 20 ms against 3
  EXPECT_EQ(result.operators[1].name, "mul");
  EXPECT_NEAR(result.operators[0].flops, 200 * std::pow(4096.0, 3), 1);
  EXPECT_NEAR(result.operators[0].flops_per_byte, 4096.0 / 3, 1e-9);
  EXPECT_EQ(result.operators[0].intensity, IntensityClass::kComputeBound);
  EXPECT_EQ(result.operators[1].intensity, IntensityClass::kMemoryBound);
  EXPECT_NEAR(result.operators[1].share_of_peak_bandwidth, 0.886, 0.02);  // memory.json
  ASSERT_EQ(result.modules.size(), 1u);
  EXPECT_NEAR(result.modules[0].share_of_compute, 1, 1e-12);
  EXPECT_EQ(result.phases.size(), 2u);
  EXPECT_NEAR(
      result.phases[0].seconds + result.phases[1].seconds, result.modules[0].seconds, 1e-12);
}

// A B200 has 4,500 TFLOP/s in FP8 and 2,250 in bf16. In 1 s each: a product in FP8 at half of its
// peak, and one in bf16 at 0.8 of its peak; of both together 0.65.
TEST(Roofline, ComparesProductsInFp8WithThePeakOfFp8) {
  const auto kernel = [](const char* name, const char* dtype, double flops) {
    PricedKernel priced;
    priced.record = directed_operator(name, Direction::kForward, {}, flops, 1e9, 1);
    priced.record.dtype = dtype;
    priced.price.seconds = 1;
    return priced;
  };
  Roofline result;
  set_rows({kernel("aten::_scaled_mm", "Float8_e4m3fn", 2250e12),
            kernel("aten::mm", "BFloat16", 1800e12)},
           *find_gpu("b200"),
           Dtype::kBf16,
           result);
  EXPECT_NEAR(result.operators[0].share_of_peak_flops, 0.5, 1e-9);
  EXPECT_NEAR(result.operators[1].share_of_peak_flops, 0.8, 1e-9);
  EXPECT_NEAR(result.modules[0].share_of_peak_flops, 0.65, 1e-9);
}

TEST(Roofline, NamesHotspotsWithTheirShapes) {
  const Plan plan = small_plan();
  const Roofline result = roofline(plan, {profile_with_work(plan, 0)});
  EXPECT_EQ(result.hotspots[0].name, "forward mlp mm [4096, 4096] x [4096, 4096]");
  EXPECT_EQ(result.hotspots[0].count, 100);
}

double seconds_of(const Roofline& roofline, const std::string& name) {
  for (const StepBound& bound : roofline.bounds) {
    if (bound.name == name) return bound.seconds;
  }
  return 0;
}

TEST(Roofline, SplitsTheStepIntoWhatItWaitsFor) {
  const Plan plan = pipeline_plan();
  std::vector<RankProfile> profiles;
  for (const RankProfile& profile : profiles_of(plan)) {
    profiles.push_back(profile_with_work(plan, profile.rank));
  }
  const Roofline result = roofline(plan, profiles);
  double sum = 0;
  for (const StepBound& bound : result.bounds) sum += bound.seconds;
  EXPECT_NEAR(sum, result.iteration_seconds, 1e-9);
  EXPECT_GT(seconds_of(result, "compute"), 15e-3);
  EXPECT_NEAR(seconds_of(result, "memory bandwidth"), 10 * (1e9 / (3.352e12 * 0.886) + 4e-6), 1e-5);
  // 3 of 8 + 3 forward and backward places are bubble.
  EXPECT_NEAR(seconds_of(result, "pipeline bubble") / result.iteration_seconds, 3.0 / 11, 1e-3);
}

TEST(Roofline, HalvesTheBubbleToWhereWorkHalves) {
  const Plan plan = pipeline_plan();
  const Roofline result = roofline(plan, profiles_of(plan));
  ASSERT_EQ(result.bounds[0].name, "compute");
  EXPECT_NEAR(result.bounds[0].step_seconds_if_twice_as_fast, result.iteration_seconds / 2, 1e-9);
}

TEST(Roofline, TellsTheLinkInsideAMachineFromTheNetwork) {
  const auto with_tensor_call = [](const Plan& plan) {
    RankProfile profile = profile_of(plan, 0);
    CollectiveCall call;
    call.kind = CollectiveKind::kAllReduce;
    call.group = GroupKind::kTensor;
    call.group_size = plan.parallelism.tensor;
    call.bytes = int64_t{1} << 30;
    profile.collectives = {collectives(Direction::kForward, call, 8)};
    return roofline(plan, {profile});
  };
  const Roofline inside = with_tensor_call(small_plan({{"parallelism", {{"tensor", 8}}}}));
  EXPECT_GT(seconds_of(inside, "link inside a machine"), 0);
  EXPECT_EQ(seconds_of(inside, "network"), 0);
  const Roofline across = with_tensor_call(
      small_plan({{"cluster", {{"gpu", "l40s"}, {"nodes", 2}, {"gpus_per_node", 4}}},
                  {"parallelism", {{"tensor", 8}}}}));
  EXPECT_EQ(seconds_of(across, "link inside a machine"), 0);
  EXPECT_GT(seconds_of(across, "network"), 0);
}

/// FSDP2's shards inside of machines, and its replicas between them.
TEST(Roofline, TellsTheLinksOfShardsFromThoseOfReplicas) {
  const auto with_calls = [](const char* link) {
    const Plan plan = small_plan(
        {{"cluster", {{"nodes", 8}, {"inter_link", link}}},
         {"parallelism", {{"zero_stage", 2}, {"num_distributed_optimizer_instances", 8}}},
         {"training", {{"framework", "torchtitan"}, {"global_batch_size", 64}}}});
    RankProfile profile = profile_of(plan, 0);
    for (const auto& [kind, group] :
         {std::pair{CollectiveKind::kReduceScatter, GroupKind::kDataContext},
          std::pair{CollectiveKind::kAllReduce, GroupKind::kInstances}}) {
      CollectiveCall call;
      call.kind = kind;
      call.group = group;
      call.group_size = 8;
      call.bytes = int64_t{1} << 30;
      profile.collectives.push_back(collectives(Direction::kReduceGradients, call, 1));
    }
    return roofline(plan, {profile});
  };
  const Roofline fast = with_calls("ib-xdr-800"), slow = with_calls("tcp-100g");
  EXPECT_GT(seconds_of(fast, "network"), 0);
  EXPECT_GT(seconds_of(slow, "network"), 5 * seconds_of(fast, "network"));
  EXPECT_NEAR(seconds_of(slow, "link inside a machine"),
              seconds_of(fast, "link inside a machine"),
              0.1 * seconds_of(fast, "link inside a machine"));
}

}  // namespace
}  // namespace estimator
