// On which device a rank runs.
#pragma once

#include <string>

#include "estimator/profile/rank_profile.h"
#include "sim/cli/process/environment.h"

namespace sim {

/// "cuda", "virtual", "cpu", or "auto": cuda where a driver of NVIDIA's is loaded, else virtual.
/// Throws UserError for any other name.
estimator::DeviceKind choose_device(const std::string& name);

/// Throws UserError (this machine lacks it): `what`, since no driver of NVIDIA's is loaded here.
/// Does nothing where one is.
void require_driver(const std::string& what,
                    const std::string& help,
                    const Environment& environment);

}  // namespace sim
