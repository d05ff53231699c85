// Does a plan fit? Runs its ranks, those first that are likely to need most.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/compute/calibration.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace sim {

/// Runs some ranks of a plan (run_ranks() with a device and an environment), and what prices them.
struct PlanRunner {
  std::function<std::vector<estimator::RankProfile>(const estimator::Plan& plan,
                                                    const std::vector<int64_t>& ranks)>
      run;
  std::optional<estimator::Calibration> calibration = std::nullopt;
};

struct FitAnswer {
  estimator::Fit fit = estimator::Fit::kDoesNotFit;
  int64_t peak_bytes = 0;  ///< of the worst rank that was run; where all were, of all ranks
  /// Where all classes were run, so whenever the plan may fit.
  std::optional<estimator::ClusterEstimate> estimate;

  bool fits() const { return fit == estimator::Fit::kFits; }
};

/// Runs the class of stage `likely_stage` first, and the others only when that one may fit.
FitAnswer probe_fit(const estimator::Plan& plan, int64_t likely_stage, const PlanRunner& runner);

/// The pipeline stage of the rank that needs most.
int64_t worst_stage(const estimator::ClusterEstimate& estimate);

}  // namespace sim
