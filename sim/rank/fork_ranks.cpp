#include "sim/rank/fork_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <optional>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/machine.h"
#include "sim/rank/child_processes.h"
#include "sim/rank/rank_device.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::OutOfMemoryRecord;
using estimator::Plan;
using estimator::RankProfile;
using estimator::UserError;

/// A child's exit code when the rank did not fit: the record follows as JSON on its pipe.
constexpr int kOutOfMemoryExit = 64;

/// One run of one rank. One that runs out of memory runs again to see where, recorded throughout,
/// and then, `out_of_memory` set, without the limit.
struct Attempt {
  int64_t rank = 0;
  bool recorded = false;
  std::optional<OutOfMemoryRecord> out_of_memory;
};

struct Child {
  Attempt attempt;
  int message_pipe = -1;
};

std::string profile_path(const std::string& folder, int64_t rank) {
  return folder + "/" + estimator::profile_file_name(rank);
}

void write_all(int file, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(file, text.data() + at, text.size() - at);
    if (written <= 0) return;  // the parent is gone, and with it the need to tell
    at += static_cast<std::size_t>(written);
  }
}

std::string read_all(int file) {
  std::string text;
  char buffer[4096];
  for (ssize_t size; (size = read(file, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(size));
  }
  return text;
}

/// The life of a child; returns its exit code.
int run_attempt(const Plan& plan, const RankJobs& jobs, const Attempt& attempt, int message_pipe) {
  const bool lifted = attempt.out_of_memory.has_value();
  start_device(jobs.run.device, lifted);
  RankRunOptions options = jobs.run;
  options.record_throughout = attempt.recorded && !lifted;
  RankRunResult result = run_rank(plan, attempt.rank, options);
  if (const auto* out_of_memory = std::get_if<OutOfMemoryRecord>(&result)) {
    write_all(message_pipe, estimator::to_json(*out_of_memory).dump());
    return kOutOfMemoryExit;
  }
  const FinishedRank& finished = std::get<FinishedRank>(result);
  for (std::size_t file = 0; file < kMemoryFiles.size(); ++file) {
    if (!jobs.run.memory_files[file]) continue;
    estimator::write_file_whole(jobs.output_folder + "/" + memory_file_name(file, attempt.rank),
                                finished.memory_files[file]);
  }
  RankProfile profile = finished.profile;
  profile.limit_lifted = lifted;
  profile.out_of_memory = attempt.out_of_memory;
  estimator::write_file_whole(profile_path(jobs.output_folder, attempt.rank),
                              estimator::to_json(profile).dump());
  return 0;
}

class ForkedRanks {
 public:
  ForkedRanks(const Plan& plan, const RankJobs& jobs) : plan_(plan), jobs_(jobs) {
    for (const int64_t rank : jobs.ranks) waiting_.push_back({.rank = rank});
  }
  ForkedRanks(const ForkedRanks&) = delete;
  ForkedRanks& operator=(const ForkedRanks&) = delete;

  bool all_done() const { return waiting_.empty() && processes_.running() == 0; }

  void start_waiting() {
    while (!waiting_.empty() && static_cast<int64_t>(processes_.running()) < jobs_.at_once) {
      start(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }

  /// Waits for one child; the rank whose profile it wrote, or nothing when it is to run again.
  std::optional<int64_t> collect_one() {
    const ChildProcesses::Ended ended = processes_.wait_for_one();
    const Child child = std::move(running_.extract(ended.pid).mapped());
    const std::string message = read_all(child.message_pipe);
    close(child.message_pipe);
    if (!WIFEXITED(ended.status)) throw_failure(ended);
    if (WEXITSTATUS(ended.status) == 0) return child.attempt.rank;
    if (WEXITSTATUS(ended.status) != kOutOfMemoryExit) throw_failure(ended);
    run_again(child.attempt, message);
    return std::nullopt;
  }

 private:
  void start(Attempt attempt) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw estimator::machine_error("cannot start a process for a rank", errno);
    }
    const pid_t pid = processes_.start(fmt::format("rank {}", attempt.rank), [&] {
      close(ends[0]);
      return run_attempt(plan_, jobs_, attempt, ends[1]);
    });
    close(ends[1]);
    running_.emplace(pid, Child{.attempt = std::move(attempt), .message_pipe = ends[0]});
  }

  void run_again(const Attempt& attempt, const std::string& message) {
    estimator::FieldReader reader("rank process");
    OutOfMemoryRecord record;
    reader.read(estimator::parse_json(message, "rank process"), record, "");
    if (jobs_.run.device != estimator::DeviceKind::kVirtual) {
      throw UserError({.what = fmt::format("rank {} does not fit on this GPU", attempt.rank),
                       .where = fmt::format("{}: {}", record.phase, record.message),
                       .help = "use --device virtual, which can run the rank without the limit and "
                               "report how much it needs"},
                      ExitCode::kMachineLacks);
    }
    if (attempt.out_of_memory) {
      throw UserError(
          {.what = fmt::format("rank {} needs more than the virtual GPU can have", attempt.rank),
           .where = fmt::format("{}: {}", record.phase, record.message),
           .help = "split the model over more ranks"});
    }
    if (attempt.recorded)
      waiting_.push_front(
          {.rank = attempt.rank, .recorded = true, .out_of_memory = std::move(record)});
    else
      waiting_.push_front({.rank = attempt.rank, .recorded = true});
  }

  const Plan& plan_;
  const RankJobs& jobs_;
  std::deque<Attempt> waiting_;
  std::map<pid_t, Child> running_;
  ChildProcesses processes_;
};

}  // namespace

void fork_ranks(const Plan& plan,
                const RankJobs& jobs,
                const std::function<void(int64_t rank, const std::string& file)>& finished) {
  ForkedRanks ranks(plan, jobs);
  while (!ranks.all_done()) {
    ranks.start_waiting();
    if (const auto rank = ranks.collect_one()) {
      finished(*rank, estimator::profile_file_name(*rank));
    }
  }
}

}  // namespace sim
