// Estimates the whole cluster from the profiles of a few ranks.
#pragma once

#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/compute/calibration.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"
#include "estimator/step/step_timeline.h"

namespace estimator {

/// Estimates the cluster of a resolved plan from one profile for each class of rank_classes(plan).
/// A profile stands for the class of its pipeline stage. If a class has several profiles, the one
/// that needs most memory counts.
///
/// `tool` of the estimate is that of the first profile. `advice` is left empty, because it needs
/// runs of other plans.
///
/// `calibration` replaces the built-in rates of the plan's GPU; it may be null.
///
/// Throws UserError when a class has no profile (naming the ranks to run), when a profile was made
/// from another plan (naming the first difference), and when the GPU lacks the plan's dtype.
ClusterEstimate estimate_cluster(const Plan& plan,
                                 const std::vector<RankProfile>& profiles,
                                 const Calibration* calibration = nullptr);

/// The timeline of one step of the same cluster. Throws as estimate_cluster() does.
StepTimeline cluster_timeline(const Plan& plan,
                              const std::vector<RankProfile>& profiles,
                              const Calibration* calibration = nullptr);

/// Makes throughput and training anew from a measured iteration of this plan, and scales the
/// seconds of the advice. Call it last. Throws UserError for an iteration in which a GPU would do
/// more than its peak.
void use_measured_step(double seconds, const Plan& plan, ClusterEstimate& estimate);

/// Makes throughput and training of the plan anew from the estimated iteration.
void use_estimated_step(const Plan& plan, ClusterEstimate& estimate);

}  // namespace estimator
