// The page of a program's ranks: of `exec`, and of `estimate --profiles` of a program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/program/program_estimate.h"
#include "sim/cli/page/page.h"
#include "sim/cli/page/rank_detail.h"

namespace sim {

struct ProgramParts {
  std::string command;                                 ///< "onerank exec"
  std::optional<estimator::ProgramEstimate> estimate;  ///< empty if a rank has no verdict
  const estimator::ProgramReplay* replay = nullptr;    ///< null if the ranks have no step time
  std::optional<RankDetail> detail;                    ///< of the worst rank, or of the first
};

/// `profiles` has at least one rank.
Page program_page(const std::vector<estimator::RankProfile>& profiles, const ProgramParts& parts);

/// The rank that a page shows in detail: the worst one, or the first.
const estimator::RankProfile& detailed_rank(
    const std::vector<estimator::RankProfile>& profiles,
    const std::optional<estimator::ProgramEstimate>& estimate);

}  // namespace sim
