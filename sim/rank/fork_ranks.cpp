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

#include "estimator/base/error_document.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/machine.h"
#include "sim/rank/child_processes.h"
#include "sim/rank/rank_device.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::OutOfMemoryRecord;
using estimator::RankProfile;
using estimator::UserError;

/// A child's exit code when the rank did not fit: the record follows as JSON on its pipe.
constexpr int kOutOfMemoryExit = 64;
/// A child's exit code when the rank cannot run: the user's error follows as JSON on its pipe.
constexpr int kUserErrorExit = 65;

/// One run of one rank. One that runs out of memory runs again to see where, recorded throughout,
/// and then, `out_of_memory` set, without the limit.
struct Attempt {
  RankWork work;
  bool recorded = false;
  std::optional<OutOfMemoryRecord> out_of_memory;
};

struct Child {
  Attempt attempt;
  int message_pipe = -1;
};

std::string profile_path(const RankWork& work) {
  return work.output_folder + "/" + estimator::profile_file_name(work.rank);
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

/// Runs the rank and writes its files; returns the exit code of the child.
int run_attempt(const RankJobs& jobs, const Attempt& attempt, int message_pipe) {
  const bool lifted = attempt.out_of_memory.has_value();
  start_device(jobs.run.device, lifted || jobs.lift_limit);
  RankRunOptions options = jobs.run;
  options.record_throughout = attempt.recorded && !lifted;
  const RankWork& work = attempt.work;
  RankRunResult result = run_rank(*work.plan, work.rank, options);
  if (const auto* out_of_memory = std::get_if<OutOfMemoryRecord>(&result)) {
    write_all(message_pipe, estimator::to_json(*out_of_memory).dump());
    return kOutOfMemoryExit;
  }
  const FinishedRank& finished = std::get<FinishedRank>(result);
  for (std::size_t file = 0; file < kMemoryFiles.size(); ++file) {
    if (!jobs.run.memory_files[file]) continue;
    estimator::write_file_whole(work.output_folder + "/" + memory_file_name(file, work.rank),
                                finished.memory_files[file]);
  }
  RankProfile profile = finished.profile;
  profile.limit_lifted = lifted;
  profile.out_of_memory = attempt.out_of_memory;
  estimator::write_file_whole(profile_path(work), estimator::to_json(profile).dump());
  return 0;
}

/// The life of a child; returns its exit code.
int live_as_child(const RankJobs& jobs, const Attempt& attempt, int message_pipe) {
  try {
    return run_attempt(jobs, attempt, message_pipe);
  } catch (const UserError& error) {
    write_all(message_pipe, estimator::error_message(error));
    return kUserErrorExit;
  }
}

class ForkedRanks {
 public:
  ForkedRanks(const RankJobs& jobs, const RankHooks& hooks)
      : jobs_(jobs), hooks_(hooks), processes_(jobs.errors_file) {
    for (const RankWork& work : jobs.works) waiting_.push_back({.work = work});
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

  void collect_one() {
    const ChildProcesses::Ended ended = processes_.wait_for_one();
    const Child child = std::move(running_.extract(ended.pid).mapped());
    const std::string message = read_all(child.message_pipe);
    close(child.message_pipe);
    const int code = WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : -1;
    if (code == kOutOfMemoryExit) return run_again(child.attempt, message);
    if (code == kUserErrorExit) {
      return fail(child.attempt.work, estimator::error_in(message).value());
    }
    if (code != 0) throw_failure(ended);
    const RankWork& work = child.attempt.work;
    hooks_.finished(work, estimator::profile_file_name(work.rank));
  }

 private:
  void start(Attempt attempt) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw estimator::machine_error("cannot start a process for a rank", errno);
    }
    const pid_t pid = processes_.start(fmt::format("rank {}", attempt.work.rank), [&] {
      close(ends[0]);
      return live_as_child(jobs_, attempt, ends[1]);
    });
    close(ends[1]);
    running_.emplace(pid, Child{.attempt = std::move(attempt), .message_pipe = ends[0]});
  }

  void fail(const RankWork& work, const UserError& error) {
    if (!hooks_.failed) throw error;
    hooks_.failed(work, error);
  }

  void run_again(const Attempt& attempt, const std::string& message) {
    estimator::FieldReader reader("rank process");
    OutOfMemoryRecord record;
    reader.read(estimator::parse_json(message, "rank process"), record, "");
    const RankWork& work = attempt.work;
    if (jobs_.run.device != estimator::DeviceKind::kVirtual) {
      return fail(work,
                  UserError({.what = fmt::format("rank {} does not fit on this GPU", work.rank),
                             .where = fmt::format("{}: {}", record.phase, record.message),
                             .help = "use --device virtual, which can run the rank without the "
                                     "limit and report how much it needs"},
                            ExitCode::kMachineLacks));
    }
    if (attempt.out_of_memory) {
      return fail(work,
                  UserError({.what = fmt::format("rank {} needs more than the virtual GPU can have",
                                                 work.rank),
                             .where = fmt::format("{}: {}", record.phase, record.message),
                             .help = "split the model over more ranks"}));
    }
    Attempt next{.work = work, .recorded = true};
    if (attempt.recorded) next.out_of_memory = std::move(record);
    waiting_.push_front(std::move(next));
  }

  const RankJobs& jobs_;
  const RankHooks& hooks_;
  std::deque<Attempt> waiting_;
  std::map<pid_t, Child> running_;
  ChildProcesses processes_;
};

}  // namespace

void fork_ranks(const RankJobs& jobs, const RankHooks& hooks) {
  ForkedRanks ranks(jobs, hooks);
  while (!ranks.all_done()) {
    ranks.start_waiting();
    ranks.collect_one();
  }
}

}  // namespace sim
