// Finds out whether a plan fits by running its ranks, first those that are likely to need most
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/compute/calibration.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// Runs some ranks of a plan (run_ranks() with a device and an environment), and has the
/// calibration for their estimate.
struct PlanRunner {
  std::function<std::vector<RankProfile>(const Plan& plan, const std::vector<int64_t>& ranks)> run;
  std::optional<Calibration> calibration = std::nullopt;
  /// Told what is tried before it is run, "full recompute"; may be empty.
  std::function<void(const std::string& what)> announce = nullptr;
};

struct FitAnswer {
  Fit fit = Fit::kDoesNotFit;
  int64_t peak_bytes = 0;  ///< of the worst rank that was run
  /// Set if all classes were run, which is always so if the plan may fit.
  std::optional<ClusterEstimate> estimate;
  std::vector<RankProfile> profiles = {};  ///< of what was run, as long as classes are left out

  bool fits() const { return fit == Fit::kFits; }
};

/// Runs first the class of stage `likely_stage`, and the other classes only if that one may fit.
FitAnswer probe_fit(const Plan& plan, int64_t likely_stage, const PlanRunner& runner);

/// Runs the classes that the answer of probe_fit() left out, all of them for an empty answer: the
/// peak is then that of the worst rank of all. What is printed or compared has to be such a peak,
/// because a change of the plan may save memory on one stage alone.
void complete_fit(const Plan& plan, const PlanRunner& runner, FitAnswer& answer);

struct FirstThatFits {
  std::size_t step = 0;
  FitAnswer answer;
};

/// Searches `steps` (at least one), each of which saves more memory than the one before. Returns
/// the first step that surely fits, with its answer, or the last step if none fits. It tries the
/// first step, then the last, and then bisects, on the assumption that all steps after one that
/// fits also fit.
FirstThatFits first_that_fits(std::size_t steps,
                              const std::function<FitAnswer(std::size_t step)>& probe);

/// The pipeline stage of the rank that needs most memory.
int64_t worst_stage(const ClusterEstimate& estimate);

}  // namespace estimator
