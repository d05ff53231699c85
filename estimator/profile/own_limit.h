// Whether a program ran out of the GPU's memory, or of what it allows itself.
#pragma once

#include "estimator/profile/rank_profile.h"

namespace estimator {

/// Whether there was memory left for the request: the program had set a limit of its own. PyTorch's
/// allocator takes at most 20 MiB (its kLargeBuffer) for a smaller request.
inline bool reached_own_limit(const OutOfMemoryRecord& failure) {
  constexpr int64_t kLargestRounding = 20 << 20;
  return failure.free_bytes >= failure.requested_bytes + kLargestRounding;
}

}  // namespace estimator
