// Does a plan fit? Runs its ranks, those first that are likely to need most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/compute/calibration.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// Runs some ranks of a plan (run_ranks() with a device and an environment), and what prices them.
struct PlanRunner {
  std::function<std::vector<RankProfile>(const Plan& plan, const std::vector<int64_t>& ranks)> run;
  std::optional<Calibration> calibration = std::nullopt;
};

struct FitAnswer {
  Fit fit = Fit::kDoesNotFit;
  int64_t peak_bytes = 0;  ///< of the worst rank that was run; where all were, of all ranks
  /// Where all classes were run, so whenever the plan may fit.
  std::optional<ClusterEstimate> estimate;

  bool fits() const { return fit == Fit::kFits; }
};

/// Runs the class of stage `likely_stage` first, and the others only when that one may fit.
FitAnswer probe_fit(const Plan& plan, int64_t likely_stage, const PlanRunner& runner);

struct FirstThatFits {
  std::size_t step = 0;
  FitAnswer answer;
};

/// A search over `steps` (at least one) that save more memory the further they go: the first that
/// surely fits, with its answer; the last and its answer where none does. The first step is tried,
/// then the last, then it is bisected between them, as if each step after one that fits did too.
FirstThatFits first_that_fits(std::size_t steps,
                              const std::function<FitAnswer(std::size_t step)>& probe);

/// The pipeline stage of the rank that needs most.
int64_t worst_stage(const ClusterEstimate& estimate);

}  // namespace estimator
