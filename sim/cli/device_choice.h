// On which device a rank runs.
#pragma once

#include <string>

#include "estimator/profile/rank_profile.h"

namespace sim {

/// "cuda", "virtual", "cpu", or "auto": cuda where a driver of NVIDIA's is loaded, else virtual.
/// Throws UserError for any other name.
estimator::DeviceKind choose_device(const std::string& name);

}  // namespace sim
