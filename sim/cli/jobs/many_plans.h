// Estimates of many plans, for which equal ranks are run only once.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/compute/calibration.h"
#include "estimator/plan/plan.h"
#include "sim/cli/jobs/slurm_job.h"
#include "sim/cli/process/environment.h"
#include "sim/cli/ranks/rank_process.h"

namespace sim {

/// The estimate of a plan, or the text of the error because of which there is none.
struct PlanAnswer {
  std::optional<estimator::ClusterEstimate> estimate;
  std::string refusal;
};

struct ManyPlans {
  RankJob job;  ///< how ranks are run; its ranks do not count
  std::function<std::optional<estimator::Calibration>(const estimator::Plan&)> calibration_of;
  const char* progress = "running ranks";
};

/// The answers in the order of `plans`. Throws as run_ranks_of_plans() does.
std::vector<PlanAnswer> estimate_plans(const std::vector<estimator::Plan>& plans,
                                       const ManyPlans& how,
                                       const Environment& environment);

/// Runs, of what estimate_plans() runs for `plans`, only `part`, into the store of `how`, and
/// returns what to say. Throws as run_ranks_of_plans() does.
std::string run_part_of_plans(const std::vector<estimator::Plan>& plans,
                              const ManyPlans& how,
                              const Part& part,
                              const Environment& environment);

}  // namespace sim
