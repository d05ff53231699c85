// The track of a trace file on which modules contain modules, from the works that run in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/base/trace_event_file.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// Slices of direction, module, module in it, and so on. A slice lasts from the first of the works
/// that run in it one after the other to the last.
class ModuleSlices {
 public:
  ModuleSlices(int64_t process, int64_t thread, TraceEventFile& file)
      : process_(process), thread_(thread), file_(file) {}

  /// A work runs in `module`, after those that were added before; in nanoseconds. Whether another
  /// module begins.
  bool add(Direction direction, const std::string& module, int64_t begin, int64_t end);

  /// To be called after the last work.
  void close() { close_down_to(0); }

 private:
  struct Open {
    std::string name;
    int64_t begin = 0;
  };

  void close_down_to(std::size_t depth);

  int64_t process_;
  int64_t thread_;
  TraceEventFile& file_;
  std::vector<Open> open_;
  std::string last_;
  int64_t end_ = 0;
};

}  // namespace estimator
