// Advice: changes that make a plan surely fit, or make a plan that fits faster. The gain of each
// change is found by running it, never guessed.
#pragma once

#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/resolve/plan_spec.h"
#include "estimator/what_if/fit_probe.h"

namespace estimator {

/// For a plan that does not surely fit: the changes of memory_saving_changes() that make it surely
/// fit, with the fastest iteration first. If no single change does, the fastest pairs are tried
/// that would fit if each change saved what it saves alone, and the four fastest are told that do
/// fit. Where the state of a rank alone is larger than its GPU, only changes that make it smaller
/// are tried alone. If no such pair fits, the change that saves most is made and the others are
/// tried in addition, up to three changes together. If nothing fits, the advice is the single
/// changes with what they gain.
///
/// None, and nothing is run, where the state of the model alone is more than the GPUs hold, also
/// without the optimizer where the hosts may keep it.
///
/// For a plan that surely fits: the changes that save memory or time and still fit, with the
/// fastest iteration first.
///
/// Advice is sorted by priority; within one, what turns on flash attention or 16 bits comes first.
///
/// Each advice names the flags to type. The change was applied to `spec` and resolved in the same
/// way as these flags, so that the user gets the same estimate with them. `estimate` must be that
/// of `spec` itself.
std::vector<Advice> advise(const PlanSpec& spec,
                           const ClusterEstimate& estimate,
                           const PlanRunner& runner);

}  // namespace estimator
