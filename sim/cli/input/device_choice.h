// Chooses the device on which a rank runs.
#pragma once

#include <string>

#include "estimator/profile/rank_profile.h"
#include "sim/cli/process/environment.h"

namespace sim {

/// What --device may be.
std::vector<std::string> device_names();

/// The device for "cuda", "virtual", "cpu" or "auto", which is cuda if NVIDIA's driver is loaded,
/// else virtual. Throws UserError for any other name.
estimator::DeviceKind choose_device(const std::string& name);

/// Throws UserError (this machine lacks something) with `what` if NVIDIA's driver is not loaded
/// here. Does nothing if it is.
void require_driver(const std::string& what,
                    const std::string& help,
                    const Environment& environment);

}  // namespace sim
