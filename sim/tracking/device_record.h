// Describes a device.
#pragma once

#include "estimator/profile/rank_profile.h"

namespace sim {

/// Kind, name and memory as the started device reports them.
estimator::DeviceRecord device_record(estimator::DeviceKind kind);

}  // namespace sim
