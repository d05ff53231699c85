// Forked child processes that run a part of this program.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "estimator/base/stop_watch.h"

namespace sim {

class ChildProcesses {
 public:
  struct Ended {
    pid_t pid = -1;
    std::string name;
    int status = 0;  ///< as waitpid() gives it
  };

  /// Children whose work throws a user's error write it to `errors_file` too (tell_failure()).
  explicit ChildProcesses(std::string errors_file = {}) : errors_file_(std::move(errors_file)) {}
  /// Kills the children that are still running.
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  /// Forks a child that runs `work` and ends with its exit code. If `work` throws, the child prints
  /// the error (tell_failure(); an error of torch after `name`, such as "rank 3"). The child ends
  /// when this process ends. Throws UserError (this machine lacks something) when no process can be
  /// started.
  pid_t start(const std::string& name, const std::function<int()>& work);

  /// Waits until a child ends. Throws UserError (this machine lacks something) when a child was
  /// stopped by a signal and nobody continued it for 10 seconds.
  Ended wait_for_one();

  std::size_t running() const { return running_.size(); }

 private:
  /// Waits until a child ends or is stopped; if one is already stopped, waits only for a moment.
  void wait_for_change();

  const std::string errors_file_;
  std::map<pid_t, std::string> running_;
  estimator::StopWatch stop_watch_;
};

/// For a child that ended neither with 0 nor with a code that its caller expects. Throws UserError,
/// without a problem if the child has printed one itself (exit codes 2 and 3), and with one if the
/// child was killed.
[[noreturn]] void throw_failure(const ChildProcesses::Ended& child);

}  // namespace sim
