// The rank process (`onerank-rank`): started here, for some ranks of a plan.
//
// It is called as
//     onerank-rank --plan FILE --output-dir DIR --ranks 0,1024,2048 --device virtual
//                  [--all-micro-batches] [--jobs N] [--no-attribution] [--cpp-frames]
//                  [--peak-snapshot] [--memory-history] [--timeline]
// or, to measure a device, as
//     onerank-rank --calibrate FILE --device cuda
// and prints one line of JSON for each rank that it has finished, {"rank": 1024, "file": "..."};
// the profiles, and the memory files that were asked for, are then in DIR. With exit codes 2 and 3
// it has written a user's error to standard error. A virtual GPU reaches it as preloaded libraries
// and the variable ONERANK_VIRTUAL_GPU.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "estimator/compute/calibration.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"
#include "sim/cli/process/environment.h"
#include "sim/cli/process/progress.h"
#include "sim/tracking/memory_file_kinds.h"

namespace sim {

struct RankJob {
  std::vector<int64_t> ranks;
  estimator::DeviceKind device = estimator::DeviceKind::kVirtual;
  bool all_micro_batches = false;
  std::optional<int64_t> jobs;  ///< ranks that run at the same time; empty: the process decides
  bool attribute_memory = true;
  bool cpp_frames = false;
  ForEachMemoryFile<std::string> memory_files;  ///< where to, or ""; see path_for_rank()
};

/// Where a rank's file goes: `path` itself for a single rank, else "peak-rank-00017.jsonl" for
/// "peak.jsonl".
std::string path_for_rank(const std::string& path, int64_t rank, std::size_t ranks);

/// Copies the memory files of each rank from `folder` to where they are wanted.
void write_memory_files(const ForEachMemoryFile<std::string>& paths,
                        const std::vector<int64_t>& ranks,
                        const std::filesystem::path& folder);

/// Runs the ranks, writes the memory files and returns their profiles, in the order of `job.ranks`.
/// Nothing is left behind: no process and no file, also after SIGINT. Throws UserError: bad input
/// (2) or a lack of this machine (3) as the rank process found it; torch missing or foreign, the
/// process killed, no virtual GPU (3); interrupted (130). Throws std::logic_error when the rank
/// process broke its side of the bargain.
std::vector<estimator::RankProfile> run_ranks(const estimator::Plan& plan,
                                              const RankJob& job,
                                              const Environment& environment,
                                              const Progress::Display& display);

/// Measures the device's kernels, in the rank process. Throws UserError as run_ranks() does.
estimator::Calibration run_calibration(estimator::DeviceKind device,
                                       const Environment& environment);

}  // namespace sim
