// What a deterministic backward of attention costs: the blocks that add to the gradient of the
// queries take turns, where they would add as they come (data/deterministic_attention.json).
#pragma once

#include <cstdint>
#include <string>

#include "estimator/base/tagged.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// Of the usual backward's rate; 1 for unfused attention, whose products are deterministic.
/// Published for flash on Hopper and for fused on Blackwell, assumed to be so on other GPUs.
TaggedNumber deterministic_share(const std::string& gpu_id, Attention attention, int64_t sequence);

}  // namespace estimator
