#include "sim/rank/child_processes.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "estimator/base/machine.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::UserError;

/// torch tells a lack of the host's memory as an error of its own (c10/core/impl/alloc_cpu.cpp).
bool is_lack_of_memory(const c10::Error& error) {
  return std::string_view(error.what_without_backtrace()).find("DefaultCPUAllocator") !=
         std::string_view::npos;
}

int tell_failure_of_torch(const std::string& name, const c10::Error& error) {
  if (is_lack_of_memory(error)) {
    return static_cast<int>(estimator::tell_failure(std::make_exception_ptr(std::bad_alloc())));
  }
  std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what_without_backtrace());
  return EXIT_FAILURE;
}

/// Everything that can be thrown ends here: a child must not return into its parent's code.
[[noreturn]] void be_child(const std::string& name,
                           const std::function<int()>& work,
                           const std::string& errors_file) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int exit_code = EXIT_FAILURE;
  try {
    exit_code = work();
  } catch (const c10::Error& error) {
    exit_code = tell_failure_of_torch(name, error);
  } catch (...) {
    exit_code = static_cast<int>(estimator::tell_failure(std::current_exception(), errors_file));
  }
  std::fflush(stderr);
  _exit(exit_code);  // without destructors: the device's memory goes with the process
}

}  // namespace

ChildProcesses::~ChildProcesses() {
  for (const auto& [pid, name] : running_) kill(pid, SIGKILL);
  for (const auto& [pid, name] : running_) waitpid(pid, nullptr, 0);
}

pid_t ChildProcesses::start(const std::string& name, const std::function<int()>& work) {
  const pid_t pid = fork();
  if (pid < 0) throw estimator::machine_error("cannot start a process for " + name, errno);
  if (pid == 0) be_child(name, work, errors_file_);
  running_.emplace(pid, name);
  return pid;
}

void ChildProcesses::wait_for_change() {
  constexpr std::chrono::milliseconds kTick{200};
  bool has_stopped = false;
  for (const auto& [pid, name] : running_) has_stopped |= stop_watch_.is_stopped(pid, name);
  if (has_stopped) return std::this_thread::sleep_for(kTick);
  siginfo_t info{};
  waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT);
}

ChildProcesses::Ended ChildProcesses::wait_for_one() {
  Ended ended;
  while ((ended.pid = waitpid(-1, &ended.status, WNOHANG)) == 0) wait_for_change();
  const auto found = running_.find(ended.pid);
  if (found == running_.end()) throw std::logic_error("waitpid gave no child of this process");
  ended.name = std::move(found->second);
  running_.erase(found);
  return ended;
}

void throw_failure(const ChildProcesses::Ended& child) {
  if (WIFEXITED(child.status)) {
    const int code = WEXITSTATUS(child.status);
    const bool told = code == static_cast<int>(ExitCode::kBadInput) ||
                      code == static_cast<int>(ExitCode::kMachineLacks);
    if (told) throw UserError(std::vector<estimator::Problem>{}, static_cast<ExitCode>(code));
    throw std::runtime_error(child.name + " failed");
  }
  const int signal_number = WTERMSIG(child.status);
  throw estimator::killed_error(
      child.name,
      signal_number,
      "",
      estimator::help_for_killed(signal_number,
                                 "try --jobs 1",
                                 "this is a bug in Onerank: please report it with the plan"));
}

}  // namespace sim
