// When the host of a rank waits for its GPU, and what Python does between the calls.
#pragma once

#include <cstdint>

#include "estimator/compute/gpu_rates.h"
#include "estimator/plan/plan.h"
#include "estimator/step/chunk_replay.h"

namespace estimator {

struct StageChunk {
  int64_t stage = 0;
  std::size_t chunk = 0;  ///< model chunk of the stage
};

/// Of a resolved plan. Without the order of a profile the waits at ends of parts and before a step
/// are not known.
HostWaits host_waits(const Plan& plan,
                     const LaunchCost& launch,
                     const StageChunk& place,
                     bool has_order);

}  // namespace estimator
