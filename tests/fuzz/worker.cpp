#include "tests/fuzz/worker.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(5);
/// A process that waits uses no processor time; and the machine may have others to serve.
constexpr double kClockSecondsForOneOfProcessor = 20;

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int64_t resident_bytes(int process) {
  int64_t pages = 0, resident_pages = 0;
  std::ifstream(fmt::format("/proc/{}/statm", process)) >> pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

int64_t most_resident_bytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return int64_t{used.ru_maxrss} * 1024;
}

std::string end_of(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

double now() { return seconds_of(CLOCK_MONOTONIC); }

/// In memory that the worker and its parent share.
struct Worker::Shared {
  std::atomic<int64_t> next = 0;
  std::atomic<int64_t> accepted = 0;
  std::atomic<bool> is_done = false;        // with all that it had to run
  std::atomic<double> began = 0;            // of the input, by the steady clock
  std::atomic<double> began_processor = 0;  // by the worker's processor time
  std::atomic<size_t> input_bytes = 0;
  char input[kMostInputBytes];
};

Worker::Worker(Source source, Target target, Limits limits)
    : source_(std::move(source)), target_(std::move(target)), limits_(limits) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory to share with the worker");
  shared_ = {new (memory) Shared, [](Shared* shared) { munmap(shared, sizeof(Shared)); }};
}

void Worker::work(int64_t first, int64_t end, double deadline) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  constexpr rlimit kNoCore{0, 0};
  setrlimit(RLIMIT_CORE, &kNoCore);
  for (int64_t index = first; index < end && now() < deadline; ++index) {
    const std::string input = source_(index);
    std::memcpy(shared_->input, input.data(), input.size());
    shared_->input_bytes = input.size();
    shared_->began_processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    shared_->began = now();
    target_(index, input);
    fail_over_memory();
    shared_->accepted = accepted_inputs();
    shared_->next = index + 1;
  }
  shared_->is_done = true;
  std::exit(0);  // the leak sanitizer looks here
}

/// For what the parent, which looks now and then, did not see.
void Worker::fail_over_memory() const {
  if (most_resident_bytes() > limits_.bytes) {
    fail(fmt::format("{} MiB of memory", most_resident_bytes() >> 20));
  }
}

std::string Worker::excess_of(int process) const {
  clockid_t processor_time{};
  if (resident_bytes(process) > limits_.bytes) {
    return fmt::format("more than {} MiB", limits_.bytes >> 20);
  }
  if (shared_->began == 0 || clock_getcpuclockid(process, &processor_time) != 0) return "";
  if (seconds_of(processor_time) - shared_->began_processor > limits_.seconds) {
    return fmt::format("more than {} s of processor time", limits_.seconds);
  }
  const double most_seconds = limits_.seconds * kClockSecondsForOneOfProcessor;
  return now() - shared_->began > most_seconds ? fmt::format("more than {} s", most_seconds) : "";
}

std::string Worker::wait_for(int process) const {
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(kBetweenLooks);
    const std::string excess = excess_of(process);
    if (excess.empty()) continue;
    kill(process, SIGKILL);
    waitpid(process, &status, 0);
    return excess;
  }
  // A reader that ends the process does not end well, whatever its exit code says.
  return shared_->is_done && status == 0 ? "" : end_of(status);
}

std::unique_ptr<Finding> Worker::run(int64_t first,
                                     int64_t end,
                                     double deadline,
                                     Progress& progress) {
  shared_->next = first;
  shared_->accepted = 0;
  shared_->is_done = false;
  shared_->began = 0;
  shared_->input_bytes = 0;
  const int process = fork();
  if (process < 0) throw std::runtime_error(std::string("cannot fork: ") + std::strerror(errno));
  if (process == 0) work(first, end, deadline);
  const std::string what = wait_for(process);
  progress.next = shared_->next;
  progress.accepted += shared_->accepted;
  if (what.empty()) return nullptr;
  return std::make_unique<Finding>(Finding{
      .index = progress.next++, .what = what, .input = {shared_->input, shared_->input_bytes}});
}

}  // namespace fuzz
