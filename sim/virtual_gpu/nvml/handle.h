// What the sources of the stub of NVML share: its types, and the devices behind its handles.
//
// Types and numbers are those of nvml.h of CUDA 13, which is in no package that is small.
#pragma once

#include "sim/virtual_gpu/cudart/device.h"

namespace virtual_gpu::nvml {

enum Result : int {
  kSuccess = 0,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
};

/// A handle is the address of its device's place here.
inline constexpr int kMostDevices = 64;
inline char handles[kMostDevices];
using Handle = char*;

struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

/// Device of a handle, -1 for none.
inline int ordinal_of(Handle handle) {
  if (device() == nullptr || handle < handles) return -1;
  const auto ordinal = handle - handles;
  return ordinal < device()->spec.device_count ? static_cast<int>(ordinal) : -1;
}

}  // namespace virtual_gpu::nvml
