// Runs several ranks, of one plan or of many, in little more time than one: torch is loaded once,
// and then a child is forked for each rank before CUDA starts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "estimator/base/errors.h"
#include "estimator/plan/plan.h"
#include "sim/rank/rank_run.h"

namespace sim {

/// One rank of one plan, and the folder for its files. Works differ in their folder or their rank.
struct RankWork {
  const estimator::Plan* plan = nullptr;
  int64_t rank = 0;
  std::string output_folder;
};

struct RankJobs {
  std::vector<RankWork> works;
  RankRunOptions run;
  bool lift_limit = false;  ///< run without the GPU's limit of memory from the beginning
  int64_t at_once = 1;      ///< children that run at the same time
  std::string errors_file;  ///< see ChildProcesses
};

struct RankHooks {
  std::function<void(const RankWork&, const std::string& file)> finished;
  /// Gets the error of a rank that cannot run; the others go on. If empty, the error is thrown.
  std::function<void(const RankWork&, const estimator::UserError&)> failed = nullptr;
};

/// Runs the ranks. For each it writes output_folder/rank-NNNNN.json and the memory files, never in
/// part, and then calls `finished`. A rank that does not fit on the virtual GPU is run again
/// without the limit, and its profile is marked. When an error is thrown, no other child is left
/// running.
void fork_ranks(const RankJobs& jobs, const RankHooks& hooks);

}  // namespace sim
