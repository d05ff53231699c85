// The verdict on memory as text.
#pragma once

#include <cstdint>
#include <string>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/memory_health.h"

namespace sim {

/// "fits: REASON", "too close to call: REASON" or "does not fit: REASON".
std::string verdict_text(const estimator::Verdict& verdict);

/// Why no layout of these GPUs fits, and how many hold the state of the model at least; "" where
/// that is not why. `search` is the command that finds a layout.
std::string lacking_gpus_text(const estimator::ClusterEstimate& estimate,
                              int64_t world_size,
                              bool can_offload,
                              const std::string& search);

/// Where the state of each rank is larger than its GPU: what to do; "" without a command that
/// searches.
std::string lacking_ranks_text(int64_t state_bytes, const std::string& search);

/// "health: 73.6 % of the GPU's memory at the peak, within the target of 90 % (balanced)"; "" for a
/// plan that does not fit, whose verdict says how much is missing.
std::string health_text(const estimator::Verdict& verdict, const estimator::MemoryHealth& health);

}  // namespace sim
