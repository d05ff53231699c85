// What becomes of a world that does not come to its end: each ends in time, names rank and cause,
// and leaves nothing behind.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "estimator/base/fields.h"
#include "tests/paths.h"
#include "tests/sim/verify/ranks/verify_program.h"

namespace sim {
namespace {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

/// A port of the loopback that is free, or (listening) in use.
class Port {
 public:
  explicit Port(bool listening) : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    bind(descriptor_, reinterpret_cast<sockaddr*>(&address), length);
    getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length);
    number_ = ntohs(address.sin_port);
    if (listening) {
      listen(descriptor_, 8);
    } else {
      close(descriptor_);
    }
  }
  std::string number() const { return std::to_string(number_); }

 private:
  int descriptor_;
  int number_ = 0;
};

/// Ranks that are started one by one, as a launcher starts them.
class LostRanks : public VerifyProgram {
 protected:
  LostRanks() { environment_["MASTER_ADDR"] = "127.0.0.1"; }
  ~LostRanks() override {
    for (const auto& [rank, pid] : started_) kill(pid, SIGKILL);
    EXPECT_TRUE(ends_soon());
  }

  void use_fault(const std::string& fault) {
    environment_["ONERANK_RANK_PROCESS"] = tests::kFaultyRank;
    environment_["TEST_FAULT"] = fault;
    environment_["TEST_MARKER"] = path("hangs-");
  }

  std::string tensor2() const { return write_plan(2, {{"parallelism", {{"tensor", 2}}}}); }

  void start_rank(int rank, int world, const std::string& plan) {
    environment_["RANK"] = std::to_string(rank);
    environment_["WORLD_SIZE"] = std::to_string(world);
    if (!environment_.count("MASTER_PORT")) environment_["MASTER_PORT"] = Port(false).number();
    const std::string command = std::string(tests::kProgram) + " verify " + plan +
                                " --join-timeout 5 --timeout 20 >" + path("out") +
                                std::to_string(rank) + " 2>" + path("err") + std::to_string(rank);
    const pid_t pid = fork();
    if (pid == 0) {
      std::vector<std::string> variables;
      for (const auto& [name, value] : environment_) variables.push_back(name + "=" + value);
      std::vector<char*> envp;
      for (std::string& variable : variables) envp.push_back(variable.data());
      envp.push_back(nullptr);
      const std::string exec = "exec " + command;
      const char* argv[] = {"/bin/sh", "-c", exec.c_str(), nullptr};
      execve("/bin/sh", const_cast<char**>(argv), envp.data());
      _exit(126);
    }
    started_[rank] = pid;
  }

  /// The world of `tensor2`.
  void start_both_ranks() {
    const std::string plan = tensor2();
    for (const int rank : {0, 1}) start_rank(rank, 2, plan);
  }

  /// Its exit code and standard error.
  ProgramResult end_of(int rank) {
    int status = 0;
    waitpid(started_.at(rank), &status, 0);
    started_.erase(rank);
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .output = read("out" + std::to_string(rank)),
            .error = read("err" + std::to_string(rank))};
  }

  void kill_rank_process_tree(int rank) {
    const pid_t pid = started_.at(rank);
    kill(pid, SIGKILL);  // its children die with it
    waitpid(pid, nullptr, 0);
    started_.erase(rank);
  }

  /// Waits until both ranks of a world with the fault "hang" hang.
  void wait_until_both_hang() const {
    namespace fs = std::filesystem;
    const auto hanging = [this] {
      int64_t count = 0;
      for (const auto& entry : fs::directory_iterator(path(""))) {
        count += entry.path().filename().string().rfind("hangs-", 0) == 0 ? 1 : 0;
      }
      return count;
    };
    for (int i = 0; i < 600 && hanging() < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ASSERT_EQ(hanging(), 2);
  }

  /// The process of the rank that hangs, below the one that was started.
  pid_t hanging_process_of(int rank) const {
    namespace fs = std::filesystem;
    for (const auto& entry : fs::directory_iterator(path(""))) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("hangs-", 0) != 0) continue;
      const pid_t hanging = std::stoi(name.substr(std::string("hangs-").size()));
      pid_t process = hanging;
      while (process > 1 && process != started_.at(rank)) process = parent_of(process);
      if (process > 1) return hanging;
    }
    throw std::runtime_error("no process of that rank hangs");
  }

  static pid_t parent_of(pid_t process) {
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    for (std::string word; status >> word;) {
      pid_t parent = 0;
      if (word == "PPid:" && status >> parent) return parent;
    }
    return 0;
  }

  bool ends_soon() const {
    for (int i = 0; i < 100 && has_processes(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return !has_processes();
  }

  std::map<int, pid_t> started_;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST_F(LostRanks, AKilledRankEndsAWorldOfOnesOwnAtOnce) {
  environment_.erase("MASTER_ADDR");
  use_fault("rank-1-dies");
  const auto start = Clock::now();
  const ProgramResult result = run({"verify", tensor2()});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("rank 1 was killed by signal 9"));
  EXPECT_EQ(result.output, "");
  EXPECT_LT(seconds_since(start), 15);
  EXPECT_TRUE(ends_soon());
  EXPECT_TRUE(temporary_files().empty());
}

TEST_F(LostRanks, AKilledRankIsNamedToTheOthersOfALaunchedWorld) {
  use_fault("rank-1-dies");
  start_both_ranks();
  for (const int rank : {0, 1}) {
    const ProgramResult result = end_of(rank);
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.error, HasSubstr("rank 1 was killed by signal 9"));
  }
  EXPECT_TRUE(temporary_files().empty());
}

TEST_F(LostRanks, ARankWhoseMachineIsGoneIsMissedAfterTenSeconds) {
  use_fault("hang");
  start_both_ranks();
  ASSERT_NO_FATAL_FAILURE(wait_until_both_hang());
  const auto start = Clock::now();
  kill_rank_process_tree(1);
  const ProgramResult result = end_of(0);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("rank 1 is gone\n  no sign of life for 10 s"));
  EXPECT_LT(seconds_since(start), 20);
}

TEST_F(LostRanks, TheRankThatKeepsTheStoreIsMissedAtOnce) {
  use_fault("hang");
  start_both_ranks();
  ASSERT_NO_FATAL_FAILURE(wait_until_both_hang());
  const auto start = Clock::now();
  kill_rank_process_tree(0);
  const ProgramResult result = end_of(1);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("rank 0, which keeps the world's store, is gone"));
  EXPECT_LT(seconds_since(start), 10);
}

TEST_F(LostRanks, TheRankThatKeepsTheStoreIsMissedWhenItIsStopped) {
  use_fault("hang");
  start_both_ranks();
  ASSERT_NO_FATAL_FAILURE(wait_until_both_hang());
  const auto start = Clock::now();
  kill(hanging_process_of(0), SIGSTOP);
  const ProgramResult result = end_of(1);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("rank 0, which keeps the world's store, is gone"));
  EXPECT_LT(seconds_since(start), 20);
  kill_rank_process_tree(0);
}

TEST_F(LostRanks, ARankThatNeverComesIsNamed) {
  start_rank(0, 2, tensor2());
  const ProgramResult result = end_of(0);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("rank 1 did not come"));
  EXPECT_TRUE(temporary_files().empty());
}

TEST_F(LostRanks, AWorldWithoutItsFirstRankIsNotFound) {
  start_rank(1, 2, tensor2());
  const ProgramResult result = end_of(1);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("rank 1 found no world within 5 s"));
}

TEST_F(LostRanks, APortInUseIsNamedByTheRankThatNeedsIt) {
  const Port port(true);
  environment_["MASTER_PORT"] = port.number();
  start_both_ranks();  // what listens there never answers
  const ProgramResult first = end_of(0);
  EXPECT_EQ(first.exit_code, 3);
  EXPECT_THAT(first.error, HasSubstr("rank 0 cannot open the world's store"));
  EXPECT_THAT(first.error, HasSubstr("port " + port.number()));
  const ProgramResult second = end_of(1);
  EXPECT_EQ(second.exit_code, 3);
  EXPECT_THAT(second.error, HasSubstr("rank 1 found no world within 5 s"));
}

TEST_F(LostRanks, AWorldOfTheWrongSizeIsRefused) {
  start_rank(3, 4, tensor2());
  const ProgramResult result = end_of(3);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("rank 3: the world has 4 ranks, the plan needs 2"));
}

TEST_F(LostRanks, ARankWithAnotherPlanIsNamed) {
  start_rank(0, 2, tensor2());
  const std::string other = write("other.json", [&] {
    auto tree = estimator::Json::parse(read("plan.json"));
    tree["training"]["seed"] = 7;
    return tree.dump();
  }());
  start_rank(1, 2, other);
  for (const int rank : {0, 1}) {
    const ProgramResult result = end_of(rank);
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.error, HasSubstr("rank 1 is about to run something other than rank 0"));
    EXPECT_THAT(result.error, HasSubstr("plan/training/seed = 7, at rank 0 1234"));
  }
}

TEST_F(LostRanks, ARankOfAnotherVersionIsNamed) {
  const std::string plan = tensor2();
  start_rank(0, 2, plan);
  use_fault("other-version");
  start_rank(1, 2, plan);
  for (const int rank : {0, 1}) {
    const ProgramResult result = end_of(rank);
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.error, HasSubstr("version = \"0.0.1\", at rank 0 "));
  }
}

TEST_F(LostRanks, ACollectiveThatOneRankDoesNotMakeEndsInTime) {
  use_fault("drop-on-rank-1");
  const auto start = Clock::now();
  start_both_ranks();
  for (const int rank : {0, 1}) {
    const ProgramResult result = end_of(rank);
    EXPECT_EQ(result.exit_code, 3);
    // Gloo ends a process that gets a message of another size than it waits for.
    EXPECT_THAT(
        result.error,
        testing::AnyOf(HasSubstr("rank 1 was killed by signal 6"), HasSubstr("cannot go on")));
  }
  EXPECT_LT(seconds_since(start), 60);
}

TEST_F(LostRanks, AWorldThatIsDescribedInPartIsBadInput) {
  environment_["RANK"] = "0";
  environment_["WORLD_SIZE"] = "2";
  environment_.erase("MASTER_ADDR");
  const ProgramResult result = run({"verify", tensor2()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("MASTER_ADDR is not set"));
}

}  // namespace
}  // namespace sim
