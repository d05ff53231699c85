// Which of flag, variable and plan is believed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "sim/cli/input/plan_options.h"

namespace sim {
namespace {

PlanInput resolve(const std::string& more, const Environment& environment) {
  CLI::App app;
  PlanOptions options;
  options.add_to(app);
  app.parse("--model llama3-8b --gpu h100-sxm " + more, false);
  return options.resolve(environment);
}

TEST(WorldSize, ComesFromTheFlagThenTheVariableThenThePlan) {
  const Environment environment = {{"WORLD_SIZE", "16"}};
  const PlanInput flag = resolve("--world-size 32", environment);
  EXPECT_EQ(flag.plan.world_size(), 32);
  EXPECT_EQ(flag.world_size_origin, "--gpus");
  const PlanInput variable = resolve("", environment);
  EXPECT_EQ(variable.plan.world_size(), 16);
  EXPECT_EQ(variable.world_size_origin, "WORLD_SIZE");
  const PlanInput plan = resolve("--nodes 1", {});
  EXPECT_EQ(plan.plan.world_size(), 8);
  EXPECT_EQ(plan.world_size_origin, "the plan");
}

TEST(WorldSize, OfAnEmptyVariableIsNotSet) {
  EXPECT_EQ(resolve("--nodes 1", {{"WORLD_SIZE", ""}}).world_size_origin, "the plan");
}

TEST(WorldSize, IsNeverTakenFromALauncherThatCountsRealProcesses) {
  const Environment slurm = {{"SLURM_NTASKS", "4"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_EQ(resolve("--nodes 1", slurm).plan.world_size(), 8);
}

TEST(Allocator, ComesFromThePlanThenTheVariableThatWinsInPyTorchThenTheOther) {
  const Environment both = {{"PYTORCH_ALLOC_CONF", "max_split_size_mb:22"},
                            {"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:23"}};
  const PlanInput plan = resolve("--nodes 1 --allocator max_split_size_mb:21", both);
  EXPECT_EQ(plan.plan.memory.allocator, "max_split_size_mb:21");
  EXPECT_EQ(plan.allocator_origin, "the plan");
  const PlanInput older = resolve("--nodes 1", both);
  EXPECT_EQ(older.plan.memory.allocator, "max_split_size_mb:23");
  EXPECT_EQ(older.allocator_origin, "PYTORCH_CUDA_ALLOC_CONF");
  const PlanInput newer = resolve("--nodes 1", {{"PYTORCH_ALLOC_CONF", "max_split_size_mb:22"}});
  EXPECT_EQ(newer.plan.memory.allocator, "max_split_size_mb:22");
  EXPECT_EQ(newer.allocator_origin, "PYTORCH_ALLOC_CONF");
  EXPECT_EQ(resolve("--nodes 1", {}).allocator_origin, "");
}

}  // namespace
}  // namespace sim
