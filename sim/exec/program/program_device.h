// The device on which a program ran.
#pragma once

#include "estimator/profile/rank_profile.h"

namespace sim {

/// For the virtual GPU it is `told`; for a real GPU it is what the driver reports once the program
/// has started it.
estimator::DeviceRecord program_device(const estimator::DeviceRecord& told);

}  // namespace sim
