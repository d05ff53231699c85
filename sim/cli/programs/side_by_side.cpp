#include "sim/cli/programs/side_by_side.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>

#include "estimator/base/document.h"
#include "estimator/base/error_document.h"
#include "estimator/base/files.h"
#include "estimator/base/machine.h"
#include "estimator/base/machine_share.h"
#include "sim/cli/process/descendants.h"
#include "sim/cli/process/output.h"
#include "sim/cli/process/temporary_folder.h"
#include "sim/exec/messages/peer_messages.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::ExitCode;
using estimator::RankProfile;
using estimator::UserError;

/// A process with torch, its libraries and a model without values takes about 1 GiB.
constexpr int64_t kUsualRankBytes = int64_t{3} << 29;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The process that runs one rank.
class Worker {
 public:
  /// With `shows_output` the program's output is its own, else it is kept.
  Worker(int64_t rank, const fs::path& folder, bool shows_output = false)
      : rank_(rank),
        shows_output_(shows_output),
        log_(folder / ("rank-" + std::to_string(rank) + ".log")),
        problems_(folder / ("rank-" + std::to_string(rank) + ".problems")) {}
  ~Worker() {
    end();
    wait();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start(const ExecJob& job, const Environment& environment, const Interrupts& interrupts) {
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) throw estimator::machine_error("cannot start a rank", errno);
    if (pid_ == 0) become(job, environment, interrupts, parent);
  }

  bool is_running() const { return pid_ > 0 && !has_ended_; }
  bool was_started() const { return pid_ > 0; }
  bool has_failed() const { return has_ended_ && status_ != 0; }
  bool is_done() const { return has_ended_ && status_ == 0; }
  int64_t rank() const { return rank_; }
  int64_t resident_bytes() const { return resident_bytes_; }
  std::string output() const { return text_of(log_); }

  /// Whether it has ended since the last call.
  bool look() {
    if (!is_running()) return false;
    rusage usage{};
    const pid_t waited = wait4(pid_, &status_, WNOHANG, &usage);
    has_ended_ = waited != 0;
    if (waited < 0) throw estimator::machine_error("cannot wait for a rank", errno);
    resident_bytes_ = usage.ru_maxrss * 1024;  // of the largest process
    return has_ended_;
  }

  /// It ends its program, and itself.
  void end() const {
    if (is_running()) kill(pid_, SIGTERM);
  }
  void wait() {
    if (!is_running()) return;
    while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    has_ended_ = true;
  }

  [[noreturn]] void throw_its_error() const {
    if (const auto said = estimator::error_in(text_of(problems_))) throw UserError(*said);
    if (WIFEXITED(status_)) {  // it has told it
      throw UserError(std::vector<estimator::Problem>{}, ExitCode(WEXITSTATUS(status_)));
    }
    const int signal_number = WTERMSIG(status_);
    throw estimator::killed_error(
        "the process that ran rank " + std::to_string(rank_),
        signal_number,
        "--ranks",
        estimator::help_for_killed(
            signal_number, "give --jobs 1", "this is a bug in Onerank: please report it"));
  }

 private:
  [[noreturn]] void become(const ExecJob& job,
                           const Environment& environment,
                           const Interrupts& interrupts,
                           pid_t parent) const {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (!shows_output_) {
      const int log = open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
      dup2(log, STDOUT_FILENO);
      dup2(log, STDERR_FILENO);
    }
    int code = static_cast<int>(ExitCode::kDone);
    try {
      if (getppid() != parent) _exit(static_cast<int>(ExitCode::kInterrupted));
      exec_rank(job, rank_, environment, interrupts);
    } catch (const UserError& error) {
      code = static_cast<int>(error.exit_code());
      std::ofstream(problems_) << estimator::error_message(error);
    } catch (...) {
      code = static_cast<int>(estimator::tell_failure(std::current_exception()));
    }
    _exit(code);
  }

  int64_t rank_;
  bool shows_output_;
  fs::path log_;
  fs::path problems_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool has_ended_ = false;
  int64_t resident_bytes_ = 0;
};

class Workers {
 public:
  Workers(const ExecJob& job,
          const std::vector<int64_t>& ranks,
          const SideBySide& how,
          const Environment& environment,
          const Interrupts& interrupts)
      : job_(job), how_(how), environment_(environment), interrupts_(interrupts) {
    for (const int64_t rank : ranks) {
      all_.push_back(std::make_unique<Worker>(rank, folder_.path(), all_.empty()));
    }
    if (job.peers_folder.empty()) return;
    peers_.emplace(job.peers_folder);
    for (const int64_t rank : ranks) peers_->asked(rank);
  }
  ~Workers() {
    for (const auto& worker : all_) worker->end();  // all at once, before each is waited for
  }

  std::vector<RankProfile> run() {
    constexpr int kTickMilliseconds = 100;
    Progress progress("running ranks", 0, how_.display, Progress::Clock::now());
    while (profiles_.size() < all_.size()) {
      add_wanted();
      progress.set_total(static_cast<int64_t>(all_.size()));
      start_more();
      pollfd watched{interrupts_.descriptor(), POLLIN, 0};
      poll(&watched, 1, kTickMilliseconds);
      if (interrupts_.take_request_to_end()) {
        throw UserError({"interrupted", "", ""}, ExitCode::kInterrupted);
      }
      for (const auto& worker : all_) {
        if (!worker->look()) continue;
        if (peers_) peers_->ended(worker->rank());
        progress.count_one();
        rank_bytes_ = std::max(rank_bytes_, worker->resident_bytes());
        if (worker->has_failed()) end_after(*worker);
      }
      if (may_show_progress()) progress.update(Progress::Clock::now());
      hand_over();
    }
    return std::move(profiles_);
  }

 private:
  /// The output of the rank that shows it is not disturbed, and one rank is not counted.
  bool may_show_progress() const { return all_.size() > 1 && !all_.front()->is_running(); }

  int64_t limit() const {
    if (how_.at_once > 0) return how_.at_once;
    return ranks_that_fit(
        share_.processors, share_.memory_bytes, rank_bytes_ > 0 ? rank_bytes_ : kUsualRankBytes);
  }

  /// Those for whom ranks wait that run.
  void add_wanted() {
    if (!peers_ || has_failed_) return;
    for (const int64_t rank : peers_->wanted()) {
      const auto is_it = [&](const auto& worker) { return worker->rank() == rank; };
      const auto found = std::find_if(all_.begin(), all_.end(), is_it);
      const bool is_new = found == all_.end();
      if (is_new) all_.push_back(std::make_unique<Worker>(rank, folder_.path()));
      Worker& worker = is_new ? *all_.back() : **found;
      if (!worker.was_started()) start(worker);
    }
  }

  void start(Worker& worker) {
    if (peers_) peers_->started(worker.rank());
    worker.start(job_, environment_, interrupts_);
  }

  /// One that waits for another needs no processor.
  bool takes_place(const Worker& worker) const {
    return worker.is_running() && !(peers_ && peers_->is_waiting(worker.rank()));
  }

  void start_more() {
    auto running = std::count_if(
        all_.begin(), all_.end(), [&](const auto& worker) { return takes_place(*worker); });
    for (const auto& worker : all_) {
      if (worker->was_started() || running >= limit() || has_failed_) continue;
      start(*worker);
      ++running;
    }
  }

  /// Those before it may fail too, and are told first.
  void end_after(const Worker& failed) {
    has_failed_ = true;
    if (first_failed_ == nullptr) first_failed_ = &failed;
    bool is_after = false;
    for (const auto& worker : all_) {
      if (is_after) worker->end();
      is_after = is_after || worker.get() == &failed;
    }
  }

  /// In the order of the ranks, as far as they are done.
  void hand_over() {
    for (auto i = profiles_.size(); i < all_.size() && !all_[i]->is_running(); ++i) {
      const Worker& worker = *all_[i];
      if (!worker.was_started()) return;
      if (worker.has_failed()) {
        const Worker& cause = peers_ ? *first_failed_ : worker;
        write_to_standard_error(cause.output());
        cause.throw_its_error();
      }
      const fs::path path = job_.output_folder / estimator::profile_file_name(worker.rank());
      profiles_.push_back(
          estimator::read_rank_profile(estimator::read_file(path.string()), path.string()));
      how_.on_rank(profiles_.back(), worker.output());
    }
  }

  const ExecJob& job_;
  const SideBySide& how_;
  const Environment& environment_;
  const Interrupts& interrupts_;
  const TemporaryFolder folder_;
  const Descendants descendants_;
  const estimator::MachineShare share_ = estimator::machine_share();
  int64_t rank_bytes_ = 0;  // largest so far
  bool has_failed_ = false;
  const Worker* first_failed_ = nullptr;  // others may have waited for it
  std::optional<PeerRanks> peers_;
  std::vector<std::unique_ptr<Worker>> all_;
  std::vector<RankProfile> profiles_;
};

}  // namespace

int64_t ranks_that_fit(int64_t processors, int64_t available_bytes, int64_t rank_bytes) {
  return std::clamp<int64_t>(available_bytes / std::max<int64_t>(1, rank_bytes), 1, processors);
}

std::vector<RankProfile> exec_side_by_side(const ExecJob& job,
                                           const std::vector<int64_t>& ranks,
                                           const SideBySide& how,
                                           const Environment& environment,
                                           const Interrupts& interrupts) {
  return Workers(job, ranks, how, environment, interrupts).run();
}

}  // namespace sim
