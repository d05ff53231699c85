// What would make a plan surely fit that may not: each change is run, never guessed.
#pragma once

#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/plan/plan.h"
#include "sim/cli/cluster/fit_probe.h"

namespace sim {

/// The changes of memory_saving_changes() that make `plan` fit, fastest iteration first. Where no
/// single one does, the most saving one is made and the others are tried on top of it, up to three
/// at once. Where nothing fits, the single changes and what they gain. Empty when the plan surely
/// fits.
std::vector<estimator::Advice> advise(const estimator::Plan& plan,
                                      const estimator::ClusterEstimate& estimate,
                                      const PlanRunner& runner);

}  // namespace sim
