// What a deterministic backward of attention costs (data/deterministic_attention.json). The thread
// blocks that add to the gradient of the queries must do so in a fixed order, and wait for their
// turn.
#pragma once

#include <cstdint>
#include <string>

#include "estimator/base/tagged.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// The rate of the deterministic backward as a share of the usual backward's rate. It is 1 for
/// unfused attention, whose products are deterministic anyway. The numbers are published for flash
/// on Hopper and for fused on Blackwell, and assumed for other GPUs.
TaggedNumber deterministic_share(const std::string& gpu_id, Attention attention, int64_t sequence);

}  // namespace estimator
