// Children of this process that a signal has stopped.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string_view>

namespace estimator {

/// Notices children that were stopped, since nobody may ever continue them.
class StopWatch {
 public:
  /// Whether the child stands still now. To be asked a few times in a second while it does. Throws
  /// UserError (this machine lacks something) with its `name` when it has stood still for 10
  /// seconds.
  bool is_stopped(pid_t child, std::string_view name);

 private:
  std::map<pid_t, std::chrono::steady_clock::time_point> since_;
};

}  // namespace estimator
