#include "estimator/compute/host_rates.h"

#include <gtest/gtest.h>

#include <set>

#include "estimator/hardware/hardware.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

TEST(HostLink, IsKnownOfEveryGpu) {
  for (const Gpu& gpu : gpus()) {
    const HostLink& link = host_link(gpu.id);
    EXPECT_GT(link.to_host_bytes_per_second, 0) << gpu.id;
    EXPECT_GT(link.to_device_bytes_per_second, 0) << gpu.id;
    EXPECT_FALSE(link.note.empty()) << gpu.id;
    EXPECT_EQ(std::set<std::string>(link.gpus.begin(), link.gpus.end()).size(), link.gpus.size());
  }
  EXPECT_EQ(host_link("v100-sxm2-32").id, "pcie3x16");
  EXPECT_EQ(host_link("a100-sxm-80").id, "pcie4x16");
  EXPECT_EQ(host_link("h100-sxm").id, "pcie5x16");
  EXPECT_EQ(host_link("gb200").id, "nvlink-c2c");
  EXPECT_THROW(host_link("tpu"), std::logic_error);
}

// 28 bytes for each of AdamW's parameters; five times as slow where it is not fused.
TEST(CpuOptimizerRate, IsThatOfAdamSharedByTheRanksOfAMachine) {
  EXPECT_DOUBLE_EQ(cpu_optimizer_rate(1).fused_bytes_per_second, 28 * 3.71e9);
  EXPECT_DOUBLE_EQ(cpu_optimizer_rate(8).fused_bytes_per_second, 28 * 3.71e9 / 8);
  EXPECT_DOUBLE_EQ(cpu_optimizer_rate(8).unfused_bytes_per_second, 28 * 3.71e9 / 8 / 5);
}

TEST(CpuAdamRate, IsThePlansOrPublished) {
  EXPECT_EQ(cpu_adam_rate(small_plan()).source, Source::kPublished);
  Plan plan = small_plan();
  plan.time.cpu_adam_parameters_per_second = 1e10;
  EXPECT_EQ(cpu_adam_rate(plan).value, 1e10);
  EXPECT_EQ(cpu_adam_rate(plan).source, Source::kGiven);
}

}  // namespace
}  // namespace estimator
