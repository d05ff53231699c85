// How the rank process can end, and what the user is told.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "sim/cli/process/environment.h"
#include "tests/paths.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class RankProcess : public OnerankProgram {
 protected:
  ProgramResult run_fake(const std::string& mode, const std::vector<std::string>& more = {}) {
    environment_["FAKE_MODE"] = mode;
    ProgramResult result = run(small_plan({"run"}, more));
    EXPECT_THAT(temporary_files(), IsEmpty()) << mode;
    return result;
  }

  /// What the fake saw of its arguments and environment.
  std::string seen_by_fake(const std::vector<std::string>& more) {
    environment_["FAKE_MARKER"] = path("seen");
    const ProgramResult result = run_fake("", more);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return read("seen");
  }

  void wait_for(const std::string& name) const {
    for (int i = 0; i < 500 && !std::filesystem::exists(path(name)); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ASSERT_TRUE(std::filesystem::exists(path(name)));
  }
};

TEST_F(RankProcess, EndsAlsoWhereTheParentIgnoresItsChildren) {
  ignores_children_ = true;
  limits_[RLIMIT_CPU] = 5;
  EXPECT_EQ(run_fake("").exit_code, 0);
  EXPECT_THAT(run_fake("lacks-gpu").error, StartsWith("error: no GPU"));
}

/// Also true for a process that has ended and was not yet waited for, so it is asked for a while.
bool ends_soon(pid_t pid) {
  for (int i = 0; i < 250; ++i) {
    if (kill(pid, 0) != 0) return true;
    std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(status, text);
    if (text.find(") Z ") != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

TEST_F(RankProcess, ItsUserErrorsArePassedOnWithTheirExitCode) {
  const ProgramResult bad_input = run_fake("bad-input");
  EXPECT_EQ(bad_input.exit_code, 2);
  EXPECT_EQ(bad_input.error, "error: what\nis wrong\n  where = 1\n  more\n  help: way out\n");
  const ProgramResult lacks_gpu = run_fake("lacks-gpu");
  EXPECT_EQ(lacks_gpu.exit_code, 3);
  EXPECT_THAT(lacks_gpu.error, StartsWith("error: no GPU\n"));
  const ProgramResult lacks_memory = run_fake("lacks-memory");
  EXPECT_EQ(lacks_memory.exit_code, 3);
  EXPECT_THAT(lacks_memory.error, StartsWith("error: this machine has no memory left for Onerank"));
}

TEST_F(RankProcess, HasNoDescriptorsButItsStreams) {
  environment_["FAKE_MARKER"] = path("descriptors");
  run_fake("descriptors");
  EXPECT_EQ(read("descriptors").substr(0, 2), "1\n") << "its input is empty";
}

TEST_F(RankProcess, AMissingTorchIsToldWithTheLoadersLine) {
  const ProgramResult result = run_fake("cannot-load");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error,
              AllOf(StartsWith("error: "),
                    HasSubstr("torch is missing"),
                    HasSubstr("loading shared libraries: libtorch_cpu.so"),
                    HasSubstr("help: run scripts/quickstart")));
}

TEST_F(RankProcess, ThatIsNotThereIsToldAsAMissingPart) {
  environment_["ONERANK_RANK_PROCESS"] = path("none");
  const ProgramResult result = run(small_plan({"run"}));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("cannot start " + path("none")), HasSubstr("quickstart")));
}

TEST_F(RankProcess, ThatIsKilledIsToldWithTheSignal) {
  const ProgramResult killed = run_fake("killed");
  EXPECT_EQ(killed.exit_code, 3);
  EXPECT_THAT(killed.error, AllOf(HasSubstr("killed by signal 9"), HasSubstr("out of memory")));
  const ProgramResult crashed = run_fake("crashes");
  EXPECT_EQ(crashed.exit_code, 3);
  EXPECT_THAT(crashed.error,
              AllOf(HasSubstr("killed by signal 11"), HasSubstr("a bug in Onerank")));
}

TEST_F(RankProcess, ThatBreaksItsPromisesIsABug) {
  const ProgramResult other_code = run_fake("other-code");
  EXPECT_EQ(other_code.exit_code, 70);
  EXPECT_THAT(other_code.error, AllOf(HasSubstr("exit code 9"), HasSubstr("last words")));
  const ProgramResult no_profile = run_fake("no-profile");
  EXPECT_EQ(no_profile.exit_code, 70);
  EXPECT_THAT(no_profile.error, AllOf(HasSubstr("internal"), HasSubstr("no profile of rank 0")));
}

TEST_F(RankProcess, AfterAnInterruptNeitherProcessesNorFilesAreLeft) {
  for (const int signal_number : {SIGINT, SIGTERM}) {
    std::filesystem::remove(path("marker"));
    environment_["FAKE_MODE"] = "hangs";
    environment_["FAKE_MARKER"] = path("marker");
    const pid_t onerank = start(small_plan({"estimate"}));
    ASSERT_NO_FATAL_FAILURE(wait_for("marker"));
    kill(onerank, signal_number);
    const ProgramResult result = finish(onerank);
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_EQ(result.output, "");
    EXPECT_THAT(temporary_files(), IsEmpty());
    std::istringstream started(read("marker"));
    for (pid_t pid; started >> pid;) EXPECT_TRUE(ends_soon(pid)) << pid;
  }
}

TEST_F(RankProcess, DiesWithOnerank) {
  environment_["FAKE_MODE"] = "hangs";
  environment_["FAKE_MARKER"] = path("marker");
  const pid_t onerank = start(small_plan({"run"}));
  ASSERT_NO_FATAL_FAILURE(wait_for("marker"));
  kill(onerank, SIGKILL);
  finish(onerank);
  pid_t fake = 0;
  pid_t its_child = 0;
  std::istringstream(read("marker")) >> fake >> its_child;
  EXPECT_TRUE(ends_soon(fake));
  kill(its_child, SIGKILL);
}

TEST_F(RankProcess, ThatIsStoppedIsNotWaitedForWithoutEnd) {
  const ProgramResult result = run_fake("stops");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("fake_rank.sh was stopped and not continued"),
                    HasSubstr("stood still for 10 s")));
}

TEST_F(RankProcess, ThatIsContinuedGoesOn) {
  const ProgramResult result = run_fake("stops-for-a-while");
  EXPECT_EQ(result.exit_code, 0) << result.error;
}

TEST_F(RankProcess, ThatCannotBeStartedIsALackOfTheMachine) {
  if (geteuid() == 0) GTEST_SKIP() << "root may start as many processes as it likes";
  environment_["FAKE_MODE"] = "";
  limits_ = {{RLIMIT_NPROC, 1}};
  const ProgramResult result = run(small_plan({"run"}));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, AllOf(HasSubstr("cannot start a program"), HasSubstr("ulimit -u")));
}

TEST_F(RankProcess, WithoutOpenFilesIsALackOfTheMachine) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer opens a pipe to see whether memory can be read";
#endif
  limits_ = {{RLIMIT_NOFILE, 8}};  // enough for the loader, not for pipes
  const ProgramResult files = run(small_plan({"run"}));
  EXPECT_EQ(files.exit_code, 3);
  EXPECT_THAT(files.error, HasSubstr("ulimit -n"));
  EXPECT_THAT(temporary_files(), IsEmpty());
}

TEST_F(RankProcess, WithoutRoomIsALackOfTheMachine) {
  limits_ = {{RLIMIT_FSIZE, 1000}};  // the plan has more, the message less
  const ProgramResult room = run(small_plan({"run"}));
  EXPECT_EQ(room.exit_code, 3);
  EXPECT_THAT(room.error, HasSubstr("ulimit -f"));
  EXPECT_THAT(temporary_files(), IsEmpty());
}

TEST_F(RankProcess, FindsAndRemovesWhatAKilledOneLeft) {
  environment_["FAKE_MODE"] = "hangs";
  environment_["FAKE_MARKER"] = path("marker");
  const pid_t killed = start(small_plan({"run"}));
  ASSERT_NO_FATAL_FAILURE(wait_for("marker"));
  kill(killed, SIGKILL);
  finish(killed);
  ASSERT_EQ(temporary_files().size(), 1u);
  environment_["FAKE_MODE"] = "";
  EXPECT_EQ(run(small_plan({"run"})).exit_code, 0);
  EXPECT_EQ(temporary_files().size(), 1u) << "a young one may be about to be locked";
  age_temporary_files();
  EXPECT_EQ(run(small_plan({"run"})).exit_code, 0);
  EXPECT_THAT(temporary_files(), IsEmpty());
}

TEST_F(RankProcess, LeavesTheFolderOfOneThatLives) {
  environment_["FAKE_MODE"] = "hangs";
  environment_["FAKE_MARKER"] = path("marker");
  const pid_t alive = start(small_plan({"run"}));
  ASSERT_NO_FATAL_FAILURE(wait_for("marker"));
  age_temporary_files();
  environment_["FAKE_MODE"] = "";
  EXPECT_EQ(run(small_plan({"run"})).exit_code, 0);
  EXPECT_EQ(temporary_files().size(), 1u);
  kill(alive, SIGTERM);
  finish(alive);
  EXPECT_THAT(temporary_files(), IsEmpty());
}

TEST_F(RankProcess, GetsItsWorkAsArguments) {
  EXPECT_THAT(seen_by_fake({"--rank", "5"}), HasSubstr("ranks=5 device=cuda all= jobs= "));
  EXPECT_THAT(seen_by_fake({"--all-micro-batches", "--jobs", "3"}),
              HasSubstr("ranks=0 device=cuda all=1 jobs=3 "));
}

TEST_F(RankProcess, GetsTheAllocatorsSettingsOfThePlanAlone) {
  environment_["PYTORCH_ALLOC_CONF"] = "expandable_segments:True";
  EXPECT_THAT(seen_by_fake({"--allocator", "max_split_size_mb:64"}),
              HasSubstr("allocator=max_split_size_mb:64 newer=\n"));
  EXPECT_THAT(seen_by_fake({}), HasSubstr("allocator=expandable_segments:True newer=\n"));
}

TEST_F(RankProcess, OnTheVirtualDeviceIsGivenAGpuToPlay) {
  const auto preload = std::filesystem::path(tests::kProgram).parent_path() / "virtual_gpu/preload";
  if (!std::filesystem::exists(preload)) {
    GTEST_SKIP() << "the virtual GPU is not built: this torch has no CUDA";
  }
  EXPECT_THAT(seen_by_fake({}), HasSubstr("\ngpu=\npreload=\n"));
  const std::string seen = seen_by_fake({"--device", "virtual"});
  EXPECT_THAT(seen,
              HasSubstr("gpu=name=NVIDIA H100 80GB HBM3;capability=9.0;multiprocessors=132;"));
  EXPECT_THAT(seen, HasSubstr("libcudart"));
}

TEST_F(RankProcess, OnAGpuNeedsADriver) {
  environment_[kDriverFileVariable] = path("none");
  const ProgramResult result = run(small_plan({"run"}, {"--device", "cuda"}));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("error: there is no GPU to run a rank on\n"));
  EXPECT_THAT(result.error, HasSubstr("use --device virtual"));
}

TEST_F(RankProcess, ThatTakesASecondIsQuietInALog) {
  const ProgramResult result = run_fake("slow");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.error, Not(HasSubstr("running ranks")));
}

}  // namespace
}  // namespace sim
