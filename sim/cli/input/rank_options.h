// How ranks are run: the flags that `run`, `estimate` and `check` share.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/process/environment.h"
#include "sim/cli/process/rank_process.h"

namespace sim {

/// The flags of memory files, whose paths go into `paths`.
void add_memory_files_to(CLI::App& app, ForEachMemoryFile<std::string>& paths);

class RankOptions {
 public:
  void add_to(CLI::App& app);
  /// The flags of memory files and of attribution, for commands whose runs are not repeated.
  void add_memory_flags_to(CLI::App& app);

  /// The device that --device names; empty for auto. Throws UserError for an unknown one.
  std::optional<estimator::DeviceKind> named_device() const;

  /// Throws UserError for an unknown device, a GPU where there is none, a number of jobs that is
  /// none, and memory files that cannot be.
  RankJob job(std::vector<int64_t> ranks, const Environment& environment) const;

 private:
  std::string device_ = "auto";
  std::string jobs_;
  bool all_micro_batches_ = false;
  bool no_attribution_ = false;
  bool cpp_frames_ = false;
  ForEachMemoryFile<std::string> memory_files_;
};

}  // namespace sim
