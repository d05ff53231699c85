#include "sim/cli/programs/srun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/base/errors.h"

namespace sim {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Pair;

TEST(Srun, IsLeftOutWithItsOptions) {
  const auto srun = parse_srun({"/usr/bin/srun",
                                "-ln",
                                "16",
                                "-N2",
                                "--exclusive",
                                "--partition",
                                "gpu",
                                "--cpu-bind=none",
                                "-K",
                                "python",
                                "train.py",
                                "-n",
                                "3"});
  ASSERT_TRUE(srun);
  EXPECT_THAT(srun->program, ElementsAre("python", "train.py", "-n", "3"));
  EXPECT_EQ(srun->tasks, 16);
}

TEST(Srun, HasTasksOfItsNodes) {
  EXPECT_EQ(parse_srun({"srun", "--nodes=2-4", "--ntasks-per-node", "8", "train"})->tasks, 16);
  EXPECT_EQ(parse_srun({"srun", "-u", "--", "train"})->tasks, std::nullopt);
}

TEST(Srun, IsNoOtherProgram) { EXPECT_FALSE(parse_srun({"python", "srun"})); }

TEST(Srun, NeedsNumbersOfTasks) {
  for (const char* number : {"many", "0", "8x", ""}) {
    EXPECT_THROW(parse_srun({"srun", "-n", number, "train"}), estimator::UserError) << number;
  }
}

TEST(Srun, NeedsAProgram) { EXPECT_THROW(parse_srun({"srun", "-n", "4"}), estimator::UserError); }

TEST(SlurmVariables, AreOfTheTaskOfTheRank) {
  Environment environment = {{"SLURM_JOB_ID", "77"}, {"SLURM_PROCID", "0"}};
  set_slurm_variables({.world_size = 16, .gpus_per_node = 8, .tasks = 16}, 9, environment);
  EXPECT_THAT(environment,
              IsSupersetOf({Pair("SLURM_PROCID", "9"),
                            Pair("SLURM_LOCALID", "1"),
                            Pair("SLURM_NODEID", "1"),
                            Pair("SLURM_NTASKS", "16"),
                            Pair("SLURM_JOB_NUM_NODES", "2"),
                            Pair("SLURM_TASKS_PER_NODE", "8(x2)"),
                            Pair("SLURM_NODELIST", "node[0-1]"),
                            Pair("SLURM_JOB_ID", "77")}));
}

TEST(SlurmVariables, OfALauncherOnEachNodeAreOfTheNode) {
  Environment environment;
  set_slurm_variables({.world_size = 16, .gpus_per_node = 8, .tasks = 2}, 9, environment);
  EXPECT_THAT(environment,
              IsSupersetOf({Pair("SLURM_PROCID", "1"),
                            Pair("SLURM_LOCALID", "0"),
                            Pair("SLURM_NTASKS", "2"),
                            Pair("SLURM_TASKS_PER_NODE", "1(x2)")}));
}

TEST(Srun, SaysWhetherEachNodeHasOneTask) {
  const auto has_one = [](const std::vector<std::string>& options) {
    std::vector<std::string> command = options;
    command.insert(command.begin(), "srun");
    command.emplace_back("train");
    return parse_srun(command)->has_a_task_for_each_node();
  };
  EXPECT_TRUE(has_one({"-N", "2", "--ntasks-per-node=1"}));
  EXPECT_TRUE(has_one({"--nodes=2", "--ntasks=2"}));
  EXPECT_TRUE(has_one({"-n", "1"}));
  EXPECT_FALSE(has_one({"-N", "2", "--ntasks-per-node=8"}));
  EXPECT_FALSE(has_one({"-n", "16"}));
  EXPECT_FALSE(has_one({})) << "Slurm's own variables decide";
}

// The launchers alone know the world: two tasks are all that srun tells.
TEST(SlurmVariables, OfARankThatOnlyItsLauncherKnowsAreOfItsNode) {
  Environment environment;
  set_slurm_variables(
      {.world_size = 2, .gpus_per_node = 8, .tasks = 2, .nodes = 2}, 9, environment);
  EXPECT_THAT(environment,
              IsSupersetOf({Pair("SLURM_PROCID", "1"),
                            Pair("SLURM_LOCALID", "0"),
                            Pair("SLURM_NODEID", "1"),
                            Pair("SLURM_NNODES", "2"),
                            Pair("SLURM_NTASKS", "2")}));
}

TEST(SlurmJob, NeedsTasksThatDivideTheWorld) {
  EXPECT_NO_THROW(check_slurm_job({.world_size = 16, .tasks = 2}));
  EXPECT_THROW(check_slurm_job({.world_size = 16, .tasks = 3}), estimator::UserError);
  EXPECT_THROW(check_slurm_job({.world_size = 16, .tasks = 0}), estimator::UserError);
}

}  // namespace
}  // namespace sim
