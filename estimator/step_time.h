// One optimizer step of the whole pipeline, put together from its stages.
//
// 1. The schedule is replayed over all stages with their own times and transfers.
// 2. Each stage then reduces what of its gradients did not hide behind its last backward.
// 3. When the slowest stage is ready (the gradient norm needs all of them), every stage ends its
// step:
//    norm, optimizer, and the parameter gather less what hides behind the next first forward. The
//    slowest end counts.
#pragma once

#include <vector>

#include "estimator/cluster_estimate.h"
#include "estimator/fabric.h"
#include "estimator/parallel_layout.h"
#include "estimator/stage_time.h"

namespace estimator {

/// `stages` has the times of each pipeline stage, in order. The parts are those of the stage that
/// is ready last; they add up to iteration_seconds. Exposed pipeline communication is what that
/// stage would end earlier if transfers took no time; the rest of its waiting is the bubble.
StepTime step_time(const Plan& plan,
                   const ParallelLayout& layout,
                   const Fabric& fabric,
                   const std::vector<StageTime>& stages);

}  // namespace estimator
