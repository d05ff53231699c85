#include "sim/cli/input/launched_world.h"

#include <gtest/gtest.h>

#include "estimator/base/errors.h"

namespace sim {
namespace {

const Environment kTorchrun = {{"TORCHELASTIC_RUN_ID", "none"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                               {"TORCHELASTIC_RESTART_COUNT", "2"},
                               {"RANK", "0"},
                               {"WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "node1"},
                               {"MASTER_PORT", "29500"}};
const Environment kSlurm = {{"SLURM_STEP_NUM_TASKS", "4"},
                            {"SLURM_PROCID", "3"},
                            {"SLURM_JOB_ID", "12"},
                            {"SLURM_STEP_ID", "1"},
                            {"SLURM_STEP_NODELIST", "node[07-09]"}};

TEST(LaunchedWorld, IsNoneWithoutALauncher) {
  EXPECT_FALSE(find_launched_world({}).has_value());
  EXPECT_FALSE(find_launched_world({{"WORLD_SIZE", "8"}}).has_value());
  // A batch script of Slurm's is not a rank: srun in it starts them.
  EXPECT_FALSE(find_launched_world({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).has_value());
}

TEST(LaunchedWorld, OfTorchrunMeetsInItsAgentsStore) {
  const LaunchedWorld world = *find_launched_world(kTorchrun);
  EXPECT_EQ(to_text(world),
            "rank 0 of 4 in the world that torchrun started; it meets at port 29500 on node1");
  EXPECT_FALSE(world.keeps_store);
  EXPECT_EQ(world.store_prefix, "onerank/2");
}

TEST(LaunchedWorld, OfSrunMeetsOnItsFirstNodeAtAPortOfTheStep) {
  LaunchedWorld world = *find_launched_world(kSlurm);
  EXPECT_EQ(to_text(world),
            "rank 3 of 4 in the world that srun started; it meets at port 20373 on node07");
  EXPECT_FALSE(world.keeps_store);
  Environment first = kSlurm;
  first["SLURM_PROCID"] = std::string("0");
  EXPECT_TRUE(find_launched_world(first)->keeps_store);
}

TEST(LaunchedWorld, OfSrunMeetsAtAPortWhateverTheNumbersOfItsJobAndStep) {
  Environment environment = kSlurm;
  environment["SLURM_JOB_ID"] = "9223372036854775807";  // 5807 of 10,000: 5807 x 31 + 5807
  environment["SLURM_STEP_ID"] = "9223372036854775807";
  EXPECT_EQ(find_launched_world(environment)->port, 25'824);
}

TEST(LaunchedWorld, MeetsWhereMasterAddrAndMasterPortSay) {
  Environment environment = kSlurm;
  environment["MASTER_ADDR"] = "10.0.0.1";
  environment["MASTER_PORT"] = "1234";
  const LaunchedWorld world = *find_launched_world(environment);
  EXPECT_EQ(world.host, "10.0.0.1");
  EXPECT_EQ(world.port, 1234);
}

TEST(LaunchedWorld, WithoutAPartOrWithAWrongOneIsBadInput) {
  for (const char* missing : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    Environment environment = kTorchrun;
    environment.erase(missing);
    EXPECT_THROW(find_launched_world(environment), estimator::UserError) << missing;
  }
  for (const auto& [name, value] :
       {std::pair{"RANK", "4"}, {"RANK", "x"}, {"MASTER_PORT", "70000"}, {"MASTER_PORT", "0"}}) {
    Environment environment = kTorchrun;
    environment[name] = value;
    EXPECT_THROW(find_launched_world(environment), estimator::UserError) << name << value;
  }
}

TEST(FirstHost, OfSlurmsLists) {
  EXPECT_EQ(first_host("localhost"), "localhost");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("node[01-03,07],login"), "node01");
  EXPECT_EQ(first_host("node[5,8]"), "node5");
  EXPECT_EQ(first_host("login,node[01-03]"), "login");
}

}  // namespace
}  // namespace sim
