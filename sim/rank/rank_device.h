// Prepares the device on which a rank runs, and PyTorch's deterministic algorithms.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace sim {

/// Loads libtorch's CUDA library if the device needs it. Does not start CUDA, so the process may
/// still fork. Throws UserError (this machine lacks something) when torch has no CUDA, when
/// `virtual` was asked for but its libraries are not loaded, and when `cuda` was asked for but they
/// are.
void load_device_library(estimator::DeviceKind kind);

/// The memory of the virtual GPU when its limit is lifted: more than any rank fills.
inline constexpr int64_t kLiftedMemoryBytes = int64_t{1} << 46;  // 64 TiB

/// Starts the device in this process and fixes settings that must not depend on the machine: of
/// PyTorch's own attention kernels only the flash kernel may run. `lift_limit` gives a virtual GPU
/// kLiftedMemoryBytes. Throws UserError (this machine lacks something) when there is no such
/// device.
void start_device(estimator::DeviceKind kind, bool lift_limit);

c10::Device torch_device(estimator::DeviceKind kind);

/// If the plan is deterministic, does what torch.use_deterministic_algorithms does, and undoes it
/// when it is destroyed.
class Determinism {
 public:
  explicit Determinism(const estimator::TrainingConfig& training);
  ~Determinism();
  Determinism(const Determinism&) = delete;
  Determinism& operator=(const Determinism&) = delete;

 private:
  bool algorithms_, fills_;  ///< settings before
};

}  // namespace sim
