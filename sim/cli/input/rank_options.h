// The flags for how ranks are run, which `run`, `estimate` and `check` share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cli/input/cli_fwd.h"
#include "sim/cli/process/environment.h"
#include "sim/cli/ranks/rank_process.h"

namespace sim {

/// Adds the flags of memory files. The given paths are stored in `paths`.
void add_memory_files_to(CLI::App& app, ForEachMemoryFile<std::string>& paths);

class RankOptions {
 public:
  void add_to(CLI::App& app);
  /// Adds the flags of memory files and of attribution. For commands that run the ranks only once.
  void add_memory_flags_to(CLI::App& app);

  /// The device that --device names; empty for auto. Throws UserError for an unknown one.
  std::optional<estimator::DeviceKind> named_device() const;

  /// The job for these ranks. Throws UserError for an unknown device, for cuda on a machine without
  /// a GPU, for --jobs that is no number, and for memory files that cannot be made.
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
