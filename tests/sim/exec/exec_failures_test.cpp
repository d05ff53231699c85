// How a program can end, and what is said of it: its own output, then one clear error.

#include <signal.h>

#include <chrono>
#include <sstream>
#include <thread>
#include <tuple>
#include <utility>

#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ExecFailures : public ExecProgram {};

bool is_alive(pid_t pid) {
  for (int i = 0; i < 100; ++i) {
    if (kill(pid, 0) != 0) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

TEST_F(ExecFailures, ACrashIsToldAfterTheProgramsOwnOutput) {
  const ProgramResult result = run_program("crashes.py", {});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("before"));
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("ValueError: broken on purpose"),
                    HasSubstr("error: the program ended with exit code 1")));
}

TEST_F(ExecFailures, TracebacksShowTheLineOfTorchThatCallsAModule) {
  const ProgramResult result = run_program("raises.py", {});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error,
              testing::ContainsRegex(", in _wrapped_call_impl\n    return self._call_impl\\("));
}

TEST_F(ExecFailures, AFunctionThatTheVirtualGpuDoesNotHaveIsNamed) {
  const ProgramResult result = run_program("decomposes.py", {});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error,
              HasSubstr("error: the virtual GPU has no answer for "
                        "cusolverDnXgeqrf_bufferSize(): what torch.linalg computes with cuSOLVER"));
}

TEST_F(ExecFailures, MemoryOfRanksOnOtherMachinesIsNamed) {
  const ProgramResult result = run_program("shares_memory.py", {"--world-size", "16"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.output, HasSubstr("nvshmem False"));
  EXPECT_THAT(
      result.error,
      AllOf(HasSubstr("memory that group 0 shares with ranks on other machines (GPUs of a machine: "
                      "8)"),
            HasSubstr("help: share memory among ranks of one machine alone")));
}

TEST_F(ExecFailures, InventedReadsAreNamed) {
  const ProgramResult result = run_program("asserts.py", {});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error,
              HasSubstr("it had read zeros for values that only kernels would have computed (aten::"
                        "equal)"));
}

// As bash, torchrun and accelerate do.
TEST_F(ExecFailures, OfAProgramThatStartsPythonHaveTheWholeHelp) {
  const std::string program = std::string(tests::kExecPrograms) + "/asserts.py";
  const std::string line = tests::kPython + std::string(" ") + program + " || exit 1";
  const ProgramResult result = run({"exec", "--output", path("out"), "--", "bash", "-c", line});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("the program ended with exit code 1 (AssertionError)"),
                    HasSubstr("only kernels would have computed (aten::equal)"),
                    Not(HasSubstr("a torch other than "))));
  const ProgramResult silent = run({"exec", "--output", path("out"), "--", "bash", "-c", "exit 1"});
  EXPECT_THAT(silent.error, HasSubstr("a torch other than "));
}

// No value of a kernel reaches a worker that loads data, or makes an import fail.
TEST_F(ExecFailures, OfTheProgramsOwnCodeAreNotLaidToWhatItWasGiven) {
  for (const char* way : {"worker", "import"}) {
    const ProgramResult result = run_program("fails_itself.py", {}, {way});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.error,
                AllOf(HasSubstr("the program ended with exit code 1 ("),
                      HasSubstr("see its output above\n"),
                      Not(HasSubstr("aten::equal"))));
  }
}

TEST_F(ExecFailures, OfCachesDoNotComeFromTheFoldersOfTheRun) {
  const char* const line =
      "import os; assert all(os.path.isdir(os.environ[name]) "
      "for name in ('TRITON_CACHE_DIR', 'TORCHINDUCTOR_CACHE_DIR'))";
  const ProgramResult result =
      run({"exec", "--output", path("out"), "--", tests::kPython, "-c", line});
  EXPECT_THAT(result.error, HasSubstr("the program did not use the GPU"));
}

TEST_F(ExecFailures, AnErrorOfTheRecorderIsNoVerdict) {
  const ProgramResult result = run_program("misreports.py", {});
  EXPECT_EQ(result.exit_code, 70);
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("error: Onerank could not record the program: the observer tells of "
                              "memory for nonsense"),
                    HasSubstr("please report it")));
}

TEST_F(ExecFailures, ASignalIsNamed) {
  const ProgramResult result = run_program("killed.py", {});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("error: the program was killed by signal 11"));
}

TEST_F(ExecFailures, AHangEndsInTimeAndLeavesNoProcess) {
  const ProgramResult result = run_program("hangs.py", {"--timeout", "5", "--steps", "2"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("error: the program was ended after 5 s"),
                    HasSubstr("give a larger --timeout")));
  pid_t child = 0;
  std::istringstream(result.output) >> child;
  ASSERT_GT(child, 0);
  EXPECT_FALSE(is_alive(child));
}

TEST_F(ExecFailures, AHangSaysHowFarTheProgramCame) {
  const ProgramResult result = run_program("stalls.py", {"--timeout", "20"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(
      result.error,
      HasSubstr("error: the program was ended after 20 s at stalls.py:10 in <module>, after "
                "1 optimizer step\n"));
}

TEST_F(ExecFailures, AnInterruptEndsAllRanksAndLeavesNoProcess) {
  const pid_t program = start(
      command("hangs.py", {"--world-size", "2", "--ranks", "0,1", "--jobs", "2"}, {path("pid")}));
  std::vector<pid_t> processes;
  for (const char* rank : {"pid-0", "pid-1"}) {
    for (int i = 0; i < 3000 && !std::filesystem::exists(path(rank)); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::istringstream ids(read(rank));
    for (pid_t pid = 0; ids >> pid;) processes.push_back(pid);
  }
  ASSERT_EQ(processes.size(), 4u);
  kill(program, SIGINT);
  const ProgramResult result = finish(program);
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.error, HasSubstr("interrupted"));
  for (const pid_t pid : processes) EXPECT_FALSE(is_alive(pid)) << pid;
  EXPECT_THAT(temporary_files(), testing::IsEmpty());
}

TEST_F(ExecFailures, OfOneRankOfSeveralIsToldWithItsOutput) {
  const ProgramResult result =
      run_program("crashes.py", {"--world-size", "2", "--ranks", "0,1", "--jobs", "2"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("ValueError: broken on purpose"),
                    HasSubstr("error: the program ended with exit code 1")));
}

TEST_F(ExecFailures, AnErrorOfOurOwnInARankOfSeveralIsToldAsItIs) {
  const std::string in_the_way = path("out/rank-00001.json/x");
  const std::string program = std::string(tests::kExecPrograms) + "/plain.py";
  const ProgramResult result =
      run({"exec",
           "--output",
           path("out"),
           "--world-size",
           "2",
           "--ranks",
           "0,1",
           "--jobs",
           "1",
           "--",
           "bash",
           "-c",
           "mkdir -p " + in_the_way + "; exec " + tests::kPython + " " + program});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, AllOf(HasSubstr("cannot remove"), Not(HasSubstr("was killed"))));
}

TEST_F(ExecFailures, AnAnswerThatCannotBeInventedIsNamed) {
  const ProgramResult result = run_program("asks_peers.py", {"--world-size", "2"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error,
              HasSubstr("error: the program asked for a value that cannot be invented: store "
                        "key \"address of rank 1\""));
}

TEST_F(ExecFailures, CountsThatNobodyComputedAreNoResult) {
  const ProgramResult result = run_program("counts.py", {});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("cannot be invented: counts that only kernels would know"));
  EXPECT_THAT(result.error, testing::Not(HasSubstr("--steps"))) << "no step was taken";
  EXPECT_FALSE(std::filesystem::exists(path("out/rank-00000.json")));
  const ProgramResult estimate = run({"estimate", "--profiles", path("out")});
  EXPECT_EQ(estimate.exit_code, 3);
  EXPECT_THAT(estimate.error,
              AllOf(testing::StartsWith("error: " + path("out/rank-00000.error") +
                                        " is there instead of a profile\n  error: the program "
                                        "asked for a value that cannot be invented: counts"),
                    HasSubstr("  help: run the rank again")));
  EXPECT_EQ(run_program("counts.py", {"--accept-invented-counts"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(path("out/rank-00000.error")));
  EXPECT_FALSE(profile(0).program->invented_reads.empty());
}

// Examples of accelerate evaluate after their epoch, and read what the model chose.
TEST_F(ExecFailures, CountsAfterTheLastStepEndTheProgramAsTheStepWould) {
  const ProgramResult refused = run_program("evaluates.py", {});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.error,
              HasSubstr("help: give --steps 1, which ends the program before that; or take"));
  const ProgramResult result = run_program("evaluates.py", {"--steps", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, AllOf(HasSubstr("fits"), testing::Not(HasSubstr("chosen"))));
  EXPECT_TRUE(profile(0).program->stopped_by_steps);
  EXPECT_EQ(run_program("evaluates.py", {"--steps", "2"}).exit_code, 3);
}

TEST_F(ExecFailures, TrainingOnTheHostGetsNoVerdict) {
  const ProgramResult result = run_program("trains_on_host.py", {});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.output, testing::Not(HasSubstr("fits")));
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("error: no verdict on rank 0: no backward ran on cuda:0"),
                    HasSubstr("see whether the model and its inputs are on that device")));
}

TEST_F(ExecFailures, OneProcessOnAllDevicesIsRefused) {
  const ProgramResult all = run_program("data_parallel.py", {});
  EXPECT_EQ(all.exit_code, 2);
  EXPECT_THAT(all.error,
              HasSubstr("error: one process trains on 8 devices, as torch.nn.DataParallel"));
  const ProgramResult one = run_program("data_parallel.py", {"--gpus-per-node", "1"});
  EXPECT_EQ(one.exit_code, 0) << one.error;
  EXPECT_THAT(one.output, HasSubstr("rank 0 of 1"));
}

TEST_F(ExecFailures, LayersOfOneProcessOnTwoDevicesAreRefused) {
  for (const char* second : {"trained", "teacher"}) {
    const ProgramResult result = run_program("split_layers.py", {}, {second});
    EXPECT_EQ(result.exit_code, 2) << second;
    EXPECT_THAT(result.error, HasSubstr("error: one process trains on 2 devices, as torch.nn."));
  }
}

TEST_F(ExecFailures, ForkedWorkersDoNotDisturbTheProfile) {
  const ProgramResult result = run_program("workers.py", {});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("done"));
  EXPECT_EQ(profile(0).program->optimizer_steps, 2);
}

TEST_F(ExecFailures, AProgramMayEndRightAfterItsBackward) {
  for (int run = 0; run < 2; ++run) {  // which thread is first is chance
    const ProgramResult result = run_program("ends_at_once.py", {});
    EXPECT_EQ(result.exit_code, 0) << result.error;
  }
}

TEST_F(ExecFailures, WhatDoesNotFitIsAVerdict) {
  const ProgramResult result = run_program("too_large.py", {"--gpu", "h100-sxm"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("CUDA out of memory"));
  EXPECT_THAT(result.output, HasSubstr("does not fit: rank 0 ran out of 79.19 GiB"));
  EXPECT_EQ(profile(0).out_of_memory->operator_name, "aten::empty");
  EXPECT_EQ(profile(0).out_of_memory->requested_bytes, int64_t{1} << 30);
  const ProgramResult lifted = run_program("too_large.py", {"--no-memory-limit"});
  EXPECT_EQ(lifted.exit_code, 1);
  EXPECT_THAT(lifted.output,
              AllOf(HasSubstr("does not fit: rank 0 needs 100."),
                    HasSubstr("\n  100.00 GiB allocator, reserved (simulated) + ")));
}

TEST_F(ExecFailures, TheGpuMayHaveOtherMemory) {
  const ProgramResult larger = run_program("too_large.py", {"--memory", "141.5"});
  EXPECT_THAT(larger.error, Not(HasSubstr("CUDA out of memory")));
  const ProgramResult slice = run_program("plain.py", {"--memory", "9.5"});
  EXPECT_EQ(slice.exit_code, 0) << slice.error;
  EXPECT_THAT(slice.output, HasSubstr("of 9.50 GiB"));
  EXPECT_THAT(run_program("plain.py", {"--memory", "0"}).error,
              HasSubstr("use GiB, more than 0 and at most 16384"));
}

TEST_F(ExecFailures, AFolderThatCannotBeMadeIsTold) {
  std::filesystem::create_symlink(path("nowhere/at/all"), path("link"));
  const ProgramResult result = run({"exec", "--output", path("link"), "--", "true"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, AllOf(HasSubstr("cannot write " + path("link")), HasSubstr("help: ")));
}

TEST_F(ExecFailures, AProgramWithoutAGpuIsTold) {
  const ProgramResult result = run({"exec", "--", "true"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("error: the program did not use the GPU"));
}

TEST_F(ExecFailures, OneRankAloneReadsStandardInput) {
  input_file_ = write("input", "words of the input\n");
  EXPECT_THAT(run({"exec", "--", "cat", "-"}).output, HasSubstr("words of the input"));
  const ProgramResult several =
      run({"exec", "--world-size", "2", "--ranks", "0,1", "--", "cat", "-"});
  EXPECT_THAT(several.output, Not(HasSubstr("words of the input")));
  EXPECT_THAT(several.error, HasSubstr("its standard input is empty"));
}

TEST_F(ExecFailures, BadFlagsAreTold) {
  EXPECT_THAT(run({"exec", "--gpu", "h100-sxn", "--", "true"}).error,
              AllOf(HasSubstr("error: unknown GPU"), HasSubstr("did you mean h100-sxm?")));
  EXPECT_THAT(run({"exec", "--expert-balanc", "balanced", "--", "python", "train.py"}).error,
              AllOf(HasSubstr("error: unknown flag"), HasSubstr("did you mean --expert-balance?")));
  EXPECT_THAT(run({"exec", "--rank", "8", "--world-size", "8", "--", "true"}).error,
              HasSubstr("use a number from 0 to 7"));
  const ProgramResult missing = run({"exec", "--", "no-such-program"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.error,
            "error: cannot start no-such-program\n  no-such-program\n"
            "  help: no folder of PATH has such a program: give its path\n");
  EXPECT_THAT(run({"exec", "--", path("no-such-program")}).error,
              HasSubstr("there is no such program, or it may not be executed"));
}

TEST_F(ExecFailures, AProfileWithoutAPlaceIsToldBeforeTheProgramRuns) {
  std::filesystem::create_directories(path("out/rank-00000.json/inside"));
  const ProgramResult result = run_program("plain.py", {});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(
      result.error,
      AllOf(HasSubstr("error: cannot write "), HasSubstr("rank-00000.json: it is a folder")));
  EXPECT_EQ(result.output, "");
}

TEST_F(ExecFailures, ArgumentsMayBeAnyBytes) {
  const ProgramResult result = run_program("plain.py", {"--steps", "1"}, {"caf\xe9"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(0).program->command.back(), "caf\xef\xbf\xbd");  // U+FFFD
}

/// A program, the way in which it is broken, and why it is refused.
using Broken = std::tuple<const char*, std::pair<const char*, const char*>>;

class ExecBroken : public ExecProgram, public testing::WithParamInterface<Broken> {};

TEST_P(ExecBroken, ProgramsThatDoNotTrainAsTheySayGetNoVerdict) {
  const auto& [program, broken] = GetParam();
  environment_["PYTHONPATH"] = tests::kBrokenPrograms;
  environment_["ONERANK_BREAK"] = broken.first;
  const ProgramResult result = run_program(program, {"--world-size", "16", "--steps", "2"});
  EXPECT_THAT(result.exit_code, testing::AnyOf(2, 3));
  EXPECT_THAT(result.error, HasSubstr(broken.second));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("fits")));
}

INSTANTIATE_TEST_SUITE_P(
    Ways,
    ExecBroken,
    testing::Combine(
        testing::Values("ddp.py", "fsdp2.py"),
        testing::Values(std::pair("steps", "no optimizer step was seen"),
                        std::pair("device", "it used cuda:7 first"),
                        std::pair("counts", "counts that only kernels would know (aten::nonzero"),
                        std::pair("world", "started a world of 8 ranks, not of 16"))),
    [](const auto& test) {
      const std::string program = std::get<0>(test.param);
      return program.substr(0, program.find('.')) + "_" + std::get<1>(test.param).first;
    });

}  // namespace
}  // namespace sim
