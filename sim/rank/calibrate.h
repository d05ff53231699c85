// Measures, on the device of this process, the kernels from whose rates estimates are computed.
#pragma once

#include "estimator/compute/calibration.h"

namespace sim {

/// `kind` is cuda, or cpu, where only a few small shapes are measured to show what the file looks
/// like. Takes a minute on a GPU. The device must have been started (sim/rank/rank_device.h).
estimator::Calibration calibrate(estimator::DeviceKind kind);

}  // namespace sim
