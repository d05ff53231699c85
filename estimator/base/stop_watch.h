// Finds child processes that a signal (such as SIGSTOP) has stopped.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string_view>

namespace estimator {

/// Notices stopped children, because it may be that nobody ever continues them.
class StopWatch {
 public:
  /// Whether the child is stopped now. Ask it a few times in a second while the child is stopped.
  /// Throws UserError (this machine lacks something), which names the child by `name`, when it has
  /// been stopped for 10 seconds.
  bool is_stopped(pid_t child, std::string_view name);

 private:
  std::map<pid_t, std::chrono::steady_clock::time_point> since_;
};

}  // namespace estimator
