// Children of this process that run a part of this program, forked.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>

#include "estimator/base/stop_watch.h"

namespace sim {

class ChildProcesses {
 public:
  struct Ended {
    pid_t pid = -1;
    std::string name;
    int status = 0;  ///< as waitpid() gives it
  };

  ChildProcesses() = default;
  /// Kills those that are still running.
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  /// Forks a child that ends with the exit code of `work`. What `work` throws it tells on standard
  /// error (tell_failure(); an error of torch behind `name`, "rank 3"). It dies with this process.
  /// Throws UserError (this machine lacks something) when no process can be started.
  pid_t start(const std::string& name, const std::function<int()>& work);

  /// Waits until one ends. Throws UserError (this machine lacks something) when one was stopped by
  /// a signal and nobody continued it for 10 seconds.
  Ended wait_for_one();

  std::size_t running() const { return running_.size(); }

 private:
  /// Waits until one has ended or was stopped, or for a moment when one is stopped already.
  void wait_for_change();

  std::map<pid_t, std::string> running_;
  estimator::StopWatch stop_watch_;
};

/// For a child that ended neither with 0 nor with a code of its caller's. Throws UserError: without
/// a problem when the child has told one (exit codes 2 and 3), with one when it was killed.
[[noreturn]] void throw_failure(const ChildProcesses::Ended& child);

}  // namespace sim
