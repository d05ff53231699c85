// When the host of a rank waits for its GPU, and what Python does between the calls.
#pragma once

#include "estimator/compute/gpu_rates.h"
#include "estimator/plan/plan.h"
#include "estimator/step/chunk_replay.h"

namespace estimator {

/// Of a resolved plan. Without the order of a profile the waits at ends of parts and before a step
/// are not known.
HostWaits host_waits(const Plan& plan, const LaunchCost& launch, bool has_order);

}  // namespace estimator
