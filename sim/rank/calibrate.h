// Measures the kernels that estimates are priced with, on the device of this process.
#pragma once

#include "estimator/compute/calibration.h"

namespace sim {

/// `kind` is cuda, or cpu: a few small shapes, to see the file. Takes a minute on a GPU.
/// The device must be started (sim/rank/device.h).
estimator::Calibration calibrate(estimator::DeviceKind kind);

}  // namespace sim
