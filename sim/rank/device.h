// The device that a rank runs on: made ready, named, measured.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "estimator/profile/rank_profile.h"

namespace sim {

/// Loads libtorch's CUDA library where the device needs it. Starts no CUDA: the process may still
/// fork. Throws UserError (this machine lacks it) when torch has no CUDA, when `virtual` was asked
/// for and its libraries are not loaded, or `cuda` and they are.
void load_device_library(estimator::DeviceKind kind);

/// Memory that no rank fills: what the virtual GPU is given when a limit is lifted.
inline constexpr int64_t kLiftedMemoryBytes = int64_t{1} << 46;  // 64 TiB

/// Starts the device in this process and pins what must not depend on the machine: attention is
/// PyTorch's flash kernel or none of PyTorch's own. `lift_limit`: see kLiftedMemoryBytes; virtual
/// only. Throws UserError (this machine lacks it) when there is no such device.
void start_device(estimator::DeviceKind kind, bool lift_limit);

c10::Device torch_device(estimator::DeviceKind kind);

}  // namespace sim
