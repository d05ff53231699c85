#include "sim/exec/program/program_device.h"

#include "sim/tracking/device_record.h"

namespace sim {

estimator::DeviceRecord program_device(const estimator::DeviceRecord& told) {
  if (told.kind != estimator::DeviceKind::kCuda) return told;
  estimator::DeviceRecord found = device_record(told.kind);
  found.allocator = told.allocator;
  return found;
}

}  // namespace sim
