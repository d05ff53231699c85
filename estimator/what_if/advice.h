// What would make a plan surely fit that may not, or faster where it fits: each change is run,
// never guessed.
#pragma once

#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/plan/plan_spec.h"
#include "estimator/what_if/fit_probe.h"

namespace estimator {

/// For a plan that does not surely fit: the changes of memory_saving_changes() that make it surely
/// fit, fastest iteration first. Where no single one does, the most saving one is made and the
/// others are tried on top of it, up to three at once. Where nothing fits, the single changes and
/// what they gain.
///
/// For a plan that surely fits: the changes that save memory or time and still fit, fastest
/// iteration first.
///
/// Each names the flags to type. What they stand for was said over `spec` and resolved as they are,
/// so that the same is estimated for them. `estimate` is of `spec` itself.
std::vector<Advice> advise(const PlanSpec& spec,
                           const ClusterEstimate& estimate,
                           const PlanRunner& runner);

}  // namespace estimator
