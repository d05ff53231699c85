// Starts the rank process (`onerank-rank`) for some ranks of a plan.
//
// It is called as
//     onerank-rank --plan FILE --output-dir DIR --ranks 0,1024,2048 --device virtual
//                  [--all-micro-batches] [--jobs N] [--no-attribution] [--cpp-frames]
//                  [--peak-snapshot] [--memory-history] [--timeline] [--lift-limit]
// or, for ranks of many plans, as
//     onerank-rank --work FILE --device virtual [...]
// where each line of FILE is the number of a plan and ranks of it, "3 0 8 16". The plan.json is in
// the folder of this number beside FILE, in which the profiles are written too. The plans have the
// same GPU and settings of memory. Or, to measure a device, as
//     onerank-rank --calibrate FILE --device cuda
// For each rank that it has finished it prints one line of JSON, {"rank": 1024, "file": "..."};
// then the profile and the wanted memory files of the rank are in DIR. (With --work the line has
// the plan's number too, and a rank that cannot run leaves a line with its error.) When it ends
// with exit code 2 or 3, it has written a user's error to standard error and, as a document, to the
// file that `--errors FILE` names, unless it had no memory for that. A virtual GPU is passed
// to it by preloaded libraries and the variable ONERANK_VIRTUAL_GPU.
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
  bool lift_limit = false;  ///< run without the GPU's limit of memory from the beginning
  ForEachMemoryFile<std::string> memory_files;  ///< paths, or ""; see path_for_rank()
  std::string store;  ///< folder that keeps what ranks of many plans gave (RankStore), or ""
  std::string what = "running ranks";  ///< for the progress
};

/// Ranks of one of several plans.
struct RanksOfPlan {
  const estimator::Plan* plan = nullptr;
  std::vector<int64_t> ranks;
};

/// The profiles of these ranks, in their order, or why one of them cannot run.
struct RanksAnswer {
  std::vector<estimator::RankProfile> profiles;
  std::string refusal;  ///< the text of an error; "" if all were run
};

/// The path of a rank's file: `path` itself if there is one rank, else for example
/// "peak-rank-00017.jsonl" for "peak.jsonl".
std::string path_for_rank(const std::string& path, int64_t rank, std::size_t ranks);

/// Copies the memory files of each rank from `folder` to the wanted paths.
void write_memory_files(const ForEachMemoryFile<std::string>& paths,
                        const std::vector<int64_t>& ranks,
                        const std::filesystem::path& folder);

/// Runs the ranks, writes the memory files and returns the profiles in the order of `job.ranks`. It
/// leaves no process and no temporary file behind, also after SIGINT. Throws UserError: with exit
/// code 2 or 3 if the rank process ended with it; with 3 if torch is missing or has another
/// version, if the process was killed, or if there is no virtual GPU; with 130 if interrupted.
/// Throws std::logic_error when the rank process did not behave as described above.
std::vector<estimator::RankProfile> run_ranks(const estimator::Plan& plan,
                                              const RankJob& job,
                                              const Environment& environment,
                                              const Progress::Display& display);

/// Runs ranks of many plans, as many at the same time as `job` says; its ranks and memory files do
/// not count. Ranks that job.store has are not run. The answers are in the order of `plans`. Throws
/// as run_ranks() does, except for the errors of ranks, which are in the answers.
std::vector<RanksAnswer> run_ranks_of_plans(const std::vector<RanksOfPlan>& plans,
                                            const RankJob& job,
                                            const Environment& environment,
                                            Progress& progress);

/// The same, with the answers of the plans whose ranks were done, and empty ones of the others,
/// where it is interrupted.
struct AnswersSoFar {
  std::vector<RanksAnswer> answers;
  bool interrupted = false;
};
AnswersSoFar run_ranks_until_interrupted(const std::vector<RanksOfPlan>& plans,
                                         const RankJob& job,
                                         const Environment& environment,
                                         Progress& progress);

/// Measures the device's kernels in the rank process. Throws UserError as run_ranks() does.
estimator::Calibration run_calibration(estimator::DeviceKind device,
                                       const Environment& environment);

}  // namespace sim
