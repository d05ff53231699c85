// The most bytes that were allocated on the device while each module ran.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "sim/tracking/module_tree.h"

namespace sim {

class ModulePeaks {
 public:
  struct Bytes {
    int64_t forward = 0;
    int64_t backward = 0;  ///< with recompute
  };

  /// `allocated_bytes` are allocated while `module` runs in `direction`.
  void note(ModuleId module, estimator::Direction direction, int64_t allocated_bytes) {
    if (!estimator::is_per_micro_batch(direction)) return;
    if (static_cast<size_t>(module) >= peaks_.size()) peaks_.resize(module + 1);
    Bytes& peak = peaks_[module];
    int64_t& bytes = direction == estimator::Direction::kForward ? peak.forward : peak.backward;
    bytes = std::max(bytes, allocated_bytes);
  }

  /// The peak of the module itself, without the modules inside it.
  Bytes of(ModuleId module) const {
    return static_cast<size_t>(module) < peaks_.size() ? peaks_[module] : Bytes{};
  }

 private:
  std::vector<Bytes> peaks_;
};

}  // namespace sim
