// Runs several ranks in little more time than one: torch is loaded once, and then a child is forked
// for each rank before CUDA starts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "estimator/plan/plan.h"
#include "sim/rank/rank_run.h"

namespace sim {

struct RankJobs {
  std::vector<int64_t> ranks;
  std::string output_folder;
  RankRunOptions run;
  int64_t at_once = 1;  ///< children that run at the same time
};

/// Runs the ranks. For each it writes output_folder/rank-NNNNN.json and the memory files, never in
/// part, and then calls `finished`. A rank that does not fit on the virtual GPU is run again
/// without the limit, and its profile is marked. Throws the UserError of a rank; then no other
/// child is left running.
void fork_ranks(const estimator::Plan& plan,
                const RankJobs& jobs,
                const std::function<void(int64_t rank, const std::string& file)>& finished);

}  // namespace sim
