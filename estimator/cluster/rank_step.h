// What a rank's kernels do in one step, and how much it holds meanwhile.
#pragma once

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"
#include "estimator/step/step_timeline.h"

namespace estimator {

/// Of `rank`, whose profile is `profile`, in a step that takes `step_seconds`: what was measured,
/// or the estimate. The mean of the allocated bytes is over the time of the step, from the timeline
/// of the rank's stage; it is empty where the timeline has no memory.
RankStep rank_step(const Plan& plan,
                   const RankClassEstimate& rank,
                   const RankProfile& profile,
                   const StepTimeline& timeline,
                   double step_seconds);

}  // namespace estimator
