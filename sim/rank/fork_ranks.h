// Runs several ranks at the price of little more than one: torch is loaded once, then one child is
// forked for each rank before CUDA starts.
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
  int64_t at_once = 1;  ///< children at the same time
};

/// Writes output_folder/rank-NNNNN.json and the memory files for each rank, whole, and calls
/// `finished` after each. A rank that does not fit on the virtual GPU is run again without the
/// limit and its profile is marked. Throws UserError as the ranks do, without any other child left
/// running.
void fork_ranks(const estimator::Plan& plan,
                const RankJobs& jobs,
                const std::function<void(int64_t rank, const std::string& file)>& finished);

}  // namespace sim
