// What a program ran on.
#pragma once

#include "estimator/profile/rank_profile.h"

namespace sim {

/// `told` for the virtual GPU; of a real one what the driver says, once the program has started it.
estimator::DeviceRecord program_device(const estimator::DeviceRecord& told);

}  // namespace sim
