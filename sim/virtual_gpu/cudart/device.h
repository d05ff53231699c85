#pragma once

#include "sim/virtual_gpu/capability.h"
#include "sim/virtual_gpu/cudart/gpu_memory.h"
#include "sim/virtual_gpu/cudart/pinned_memory.h"
#include "sim/virtual_gpu/cudart/shadow.h"
#include "sim/virtual_gpu/cudart/timeline.h"
#include "sim/virtual_gpu/cudart/work_log.h"
#include "sim/virtual_gpu/kernels/kernel_table.h"
#include "sim/virtual_gpu/spec.h"

/// The state of the virtual GPU in this process. It is global because CUDA's interfaces are C
/// functions without a context argument. It lives in the stub of the runtime, and the other stubs
/// get it from here. It is never destroyed, because torch still calls CUDA from its static
/// destructors.
namespace virtual_gpu {

/// The devices that this process simulates: `spec.device_count` equal ones.
struct Device {
  VirtualGpuSpec spec;
  CapabilityFacts facts;
  DeviceMemory memory;
  Timeline timeline;
};

/// The devices, made from ONERANK_VIRTUAL_GPU at the first call. Null if the variable is missing or
/// wrong; then the first call says so on stderr.
Device* device();

/// The device that the calling thread has selected.
int current_device();
/// Returns false if there is no such device.
bool set_current_device(int ordinal);

/// These exist before there is a device, since kernels are registered while libraries load.
KernelTable& kernels();
WorkLog& work_log();
HostMemory& host_memory();
/// Memory of the host that kernels use too. Its pages on the device give way to others, so they do
/// not count there.
HostMemory& managed_memory();
Shadow& shadow();

}  // namespace virtual_gpu
