// Which of a program's processes is the rank, and of which nothing can be said.

#include <chrono>
#include <thread>

#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::StartsWith;

class ExecRank : public ExecProgram {
 protected:
  /// torchrun's command line, of `processes` workers on this node.
  ProgramResult run_torchrun(const std::vector<std::string>& flags,
                             int processes,
                             const std::vector<std::string>& nodes = {}) {
    std::vector<std::string> words = {"exec", "--output", path("out")};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(),
                 {"--",
                  tests::kPython,
                  "-m",
                  "torch.distributed.run",
                  "--nproc-per-node",
                  std::to_string(processes)});
    words.insert(words.end(), nodes.begin(), nodes.end());
    words.push_back(std::string(tests::kExecPrograms) + "/ddp.py");
    return run(words);
  }
};

TEST_F(ExecRank, IsTheProcessThatTrainsAmongThoseThatUseTheGpu) {
  const ProgramResult result = run_program("probes.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(0).program->optimizer_steps, 2);
  EXPECT_EQ(profile(0).parameters.count, 256 * 256 + 256);
}

TEST_F(ExecRank, IsFollowedOnTheDeviceThatItUses) {
  const ProgramResult result =
      run_program("uses_device.py", {"--world-size", "8", "--rank", "3"}, {"0"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(3).program->device_index, 0);
  EXPECT_GT(profile(3).peak.allocated_bytes, 16 * 256 * 256);  // weights, gradients, two moments
  EXPECT_THAT(result.output, HasSubstr("rank 3 of 8 on cuda:0 of NVIDIA H100 80GB HBM3"));
}

TEST_F(ExecRank, WithMoreMemoryOnAnotherDeviceThanTheFirstHasNoVerdict) {
  const ProgramResult result = run_program("uses_device.py", {}, {"1", "5"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("no verdict on rank 0: it used cuda:1 first ("));
  EXPECT_THAT(profile(0).program->other_devices,
              ElementsAre(Field(&estimator::OtherDevice::index, 5)));
}

TEST_F(ExecRank, IsFoundAmongTheProcessesThatTheProgramSpawns) {
  const ProgramResult result = run_program("spawns.py", {"--world-size", "4", "--rank", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(2).rank, 2);
  EXPECT_EQ(profile(2).world_size, 4);
  EXPECT_EQ(profile(2).program->device_index, 2);
  EXPECT_EQ(profile(2).parameters.count, 192 * 192 + 192);
  EXPECT_THAT(result.output, HasSubstr("trained as 2\n"));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("trained as 1")));
}

TEST_F(ExecRank, OfAnotherNodeThanTheProgramSpawnsIsRefused) {
  const ProgramResult result = run_program("spawns.py", {"--world-size", "16", "--rank", "9"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error,
              HasSubstr("error: the program's launcher started the ranks 0, 1, 2, 3, 4, 5, 6, 7, "
                        "not rank 9\n"));
}

TEST_F(ExecRank, IsTheTaskThatSrunWouldStart) {
  const std::string program = std::string(tests::kExecPrograms) + "/slurm_task.py";
  const ProgramResult result = run({"exec",
                                    "--output",
                                    path("out"),
                                    "--rank",
                                    "9",
                                    "--",
                                    "srun",
                                    "-N",
                                    "2",
                                    "--ntasks-per-node=8",
                                    tests::kPython,
                                    program});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(9).world_size, 16);
  EXPECT_EQ(profile(9).program->device_index, 1);
}

TEST_F(ExecRank, IsTheWorkerOfThatRankUnderTorchrun) {
  const ProgramResult result = run_torchrun({"--world-size", "2", "--rank", "1"}, 2);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(1).rank, 1);
  EXPECT_EQ(profile(1).program->device_index, 1);
  EXPECT_EQ(profile(1).program->optimizer_steps, 2);
}

TEST_F(ExecRank, IsTheOnlyWorkerOfItsNodeThatRuns) {
  const ProgramResult result =
      run_torchrun({"--world-size", "64", "--rank", "27", "--gpus-per-node", "64"}, 64);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(27).rank, 27);
  EXPECT_EQ(profile(27).world_size, 64);
  const ProgramResult elsewhere = run_torchrun({"--world-size", "16", "--rank", "9"}, 2);
  EXPECT_EQ(elsewhere.exit_code, 2);
  EXPECT_THAT(elsewhere.error,
              HasSubstr("the program's launcher started the ranks 0, 1, not rank 9"));
}

TEST_F(ExecRank, IsOnItsNodeWhateverNodeTorchrunNames) {
  const std::vector<std::string> wanted = {"--world-size", "4", "--rank", "3"};
  for (const std::vector<std::string>& nodes :
       {std::vector<std::string>{"--nnodes", "2", "--node-rank", "0"},
        {"--nnodes", "2", "--node-rank", "1", "--master-addr", "elsewhere"},
        {"--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "elsewhere:29400"}}) {
    const ProgramResult result = run_torchrun(wanted, 2, nodes);
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(profile(3).world_size, 4);
    EXPECT_EQ(profile(3).program->device_index, 1);
  }
}

TEST_F(ExecRank, IsOfTheWorldThatTheProgramsLauncherMakes) {
  for (const char* flag : {"--rank", "--ranks"}) {
    const ProgramResult result = run_torchrun({flag, "3", "--steps", "1"}, 4);
    ASSERT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(profile(3).world_size, 4);
  }
  const ProgramResult both = run_torchrun({"--ranks", "0,3", "--steps", "1"}, 4);
  ASSERT_EQ(both.exit_code, 0) << both.error;
  EXPECT_EQ(profile(0).world_size, 4);
  const ProgramResult behind = run_torchrun({"--rank", "4", "--steps", "1"}, 4);
  EXPECT_EQ(behind.exit_code, 2);
  EXPECT_THAT(behind.error, HasSubstr("started the ranks 0, 1, 2, 3, not rank 4"));
}

TEST_F(ExecRank, NeedsAWorldIfTheProgramHasNoLauncher) {
  const ProgramResult alone = run_program("plain.py", {"--rank", "7", "--steps", "1"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.error,
              AllOf(HasSubstr("error: the world has one rank\n  --rank 7, rank 0 of 1"),
                    HasSubstr("help: give --world-size N")));
  const ProgramResult joins = run_program("ddp.py", {"--rank", "7"});
  EXPECT_EQ(joins.exit_code, 2);
  EXPECT_THAT(joins.error,
              AllOf(HasSubstr("as rank 7 of a world of which nobody told it the size"),
                    HasSubstr("help: give --world-size N")));
}

// The usual form of a batch script.
TEST_F(ExecRank, IsOfTheWorldOfTheLaunchersThatSrunWouldStart) {
  const ProgramResult result = run({"exec",
                                    "--output",
                                    path("out"),
                                    "--rank",
                                    "3",
                                    "--steps",
                                    "1",
                                    "--",
                                    "srun",
                                    "-N",
                                    "2",
                                    "--ntasks-per-node=1",
                                    tests::kPython,
                                    "-m",
                                    "torch.distributed.run",
                                    "--nnodes",
                                    "2",
                                    "--nproc-per-node",
                                    "2",
                                    "--rdzv-backend",
                                    "c10d",
                                    "--rdzv-endpoint",
                                    "elsewhere:29400",
                                    std::string(tests::kExecPrograms) + "/ddp.py"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(3).world_size, 4);
  EXPECT_EQ(profile(3).program->device_index, 1);
}

TEST_F(ExecRank, AutoFindsTheRanksAndTheWorldOfTheProgramsLauncher) {
  const ProgramResult result = run_torchrun({"--ranks", "auto"}, 4);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(0).world_size, 4);
  EXPECT_EQ(profile(3).rank, 3);
}

TEST_F(ExecRank, ThatIsFirstShowsItsOutputWhileItRunsAndOthersWhenTheyHaveEnded) {
  const std::string question = "is anybody there?";
  const pid_t pid =
      start(command("speaks.py", {"--world-size", "2", "--ranks", "0,1"}, {path("heard")}));
  for (int tenths = 0; tenths < 600 && read("stdout").find(question) == std::string::npos;
       ++tenths) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  write("heard", "");
  const ProgramResult result = finish(pid);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.output.find(question), result.output.rfind(question)) << result.output;
}

TEST_F(ExecRank, OfAnotherWorldThanTheProgramsLauncherMakesIsRefused) {
  const ProgramResult refused = run_torchrun({"--world-size", "16"}, 2);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(
      refused.error,
      AllOf(HasSubstr("error: the program's own launcher started a world of 2 ranks, not of 16\n  "
                      "rank 0 of 2 "
                      "(process "),
            HasSubstr("help: give --world-size 2, or start the program without its launcher")));
}

// A rank that runs later would go on from the file.
TEST_F(ExecRank, SavesNothingAfterItsLastStep) {
  const ProgramResult result = run_program("saves.py", {"--steps", "2"}, {path("kept")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, AllOf(HasSubstr("saved 0"), HasSubstr("stepped 1")));
  EXPECT_TRUE(std::filesystem::exists(path("kept-0.pt")));
  EXPECT_FALSE(std::filesystem::exists(path("kept-1.pt")));
  EXPECT_EQ(profile(0).program->optimizer_steps, 2);
  EXPECT_TRUE(profile(0).program->stopped_by_steps);
  const ProgramResult whole = run_program("saves.py", {}, {path("kept")});
  ASSERT_EQ(whole.exit_code, 0) << whole.error;
  EXPECT_TRUE(std::filesystem::exists(path("kept-1.pt")));
}

TEST_F(ExecRank, ThatNeverTrainsHasPeaksAndNoVerdict) {
  const ProgramResult result = run_program("inference.py", {"--peak-snapshot", path("peak.jsonl")});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("error: no verdict on rank 0: no optimizer step was seen"));
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("\nno verdict on rank 0"), testing::Not(HasSubstr("fits"))));
  const auto told = profile(0);
  EXPECT_EQ(told.peak.phase, "forward");
  const int64_t parameters = 2 * 512 * 2048 + 2048 + 512;
  EXPECT_EQ(told.parameters.count, parameters);
  EXPECT_EQ((*told.peak.categories)[estimator::MemoryCategory::kParameter],
            printed(result.output, "weights"));
  const ProgramResult estimate = run({"estimate", "--profiles", path("out")});
  EXPECT_EQ(estimate.exit_code, 3);
  EXPECT_THAT(estimate.error,
              StartsWith("error: no verdict on rank 0: no optimizer step was seen"));
}

TEST_F(ExecRank, ThatAllocatesNothingHasAProfileAndNoPeakSnapshot) {
  const ProgramResult result =
      run_program("initializes.py", {"--peak-snapshot", path("peak.jsonl")});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("error: no verdict on rank 0: it allocated nothing"));
  EXPECT_EQ(profile(0).peak.allocated_bytes, 0);
  EXPECT_FALSE(std::filesystem::exists(path("peak.jsonl")));
}

TEST_F(ExecRank, ThatWaitsForAnAbsentRootsFlagsHasNoVerdict) {
  EXPECT_EQ(run_program("waits_for_flags.py", {"--world-size", "8"}).exit_code, 0);
  const ProgramResult result =
      run_program("waits_for_flags.py", {"--world-size", "8", "--rank", "7"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, AllOf(HasSubstr("no optimizer step was seen"), HasSubstr("--rank 0")));
}

TEST_F(ExecRank, ThatIsNotRecordedHasNoVerdict) {
  const ProgramResult result = run_program("plain.py", {"--no-recording"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("no verdict on rank 0: nothing was recorded"));
  EXPECT_THAT(run_program("plain.py", {"--no-recording", "--steps", "2"}).error,
              HasSubstr("--steps 2 with --no-recording"));
}

}  // namespace
}  // namespace sim
