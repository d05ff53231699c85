#pragma once

#include "sim/virtual_gpu/capability.h"
#include "sim/virtual_gpu/cudart/device_memory.h"
#include "sim/virtual_gpu/cudart/host_memory.h"
#include "sim/virtual_gpu/cudart/kernel_table.h"
#include "sim/virtual_gpu/cudart/shadow.h"
#include "sim/virtual_gpu/cudart/timeline.h"
#include "sim/virtual_gpu/cudart/work_log.h"
#include "sim/virtual_gpu/spec.h"

/// The state of the process. CUDA's interfaces are C functions without a context argument, so it is
/// global; it lives in the stub of the runtime, and the other stubs ask for it here. Nothing of it
/// is ever destroyed: torch still calls CUDA from its static destructors.
namespace virtual_gpu {

/// The devices this process plays: `spec.device_count` equal ones.
struct Device {
  VirtualGpuSpec spec;
  CapabilityFacts facts;
  DeviceMemory memory;
  Timeline timeline;
};

/// Made from ONERANK_VIRTUAL_GPU at the first call. Null if the variable is missing or wrong; then
/// the first call says so on stderr.
Device* device();

/// The device that the calling thread has selected.
int current_device();
/// False if there is no such device.
bool set_current_device(int ordinal);

/// Kernels are registered while libraries load, before there is a device.
KernelTable& kernels();
WorkLog& work_log();
HostMemory& host_memory();
Shadow& shadow();

}  // namespace virtual_gpu
