// NVIDIA's management library, on how devices are joined and how their boards are set.
#include <cuda_runtime_api.h>

#include "sim/virtual_gpu/cudart/device_attributes.h"
#include "sim/virtual_gpu/cudart/peers.h"
#include "sim/virtual_gpu/nvml/handle.h"

using namespace virtual_gpu::nvml;
using virtual_gpu::device;

namespace {

constexpr int kClockGraphics = 0, kClockSm = 1, kClockMemory = 2;
constexpr int kRemoteIsSwitch = 2;
constexpr int kNode = 40, kSystem = 50, kInternal = 0;  // common ancestors of two devices
constexpr int kP2pOk = 0, kP2pNotSupported = 5;
constexpr int kP2pUnknown = 5;  // the first index of a capability that is none

bool are_devices(Handle first, Handle second) {
  return ordinal_of(first) >= 0 && ordinal_of(second) >= 0;
}

bool has_link(Handle handle, unsigned link) {
  return ordinal_of(handle) >= 0 && link < static_cast<unsigned>(device()->spec.nvlinks);
}

/// P100 and V100 are joined directly, and nobody says here which link goes where. From A100 on
/// links go to switches.
bool links_go_to_switches() { return device()->spec.capability_major >= 8; }

/// CUDA's multi-instance GPUs: data-centre boards of compute capability 8.0, 9.0 and 10.
bool can_be_sliced() {
  const int major = device()->spec.capability_major;
  return major == 9 || major == 10 || (major == 8 && device()->spec.capability_minor == 0);
}

int clock_attribute(int clock) {
  switch (clock) {
    case kClockGraphics:
    case kClockSm:
      return cudaDevAttrClockRate;
    case kClockMemory:
      return cudaDevAttrMemoryClockRate;
    default:
      return -1;
  }
}

}  // namespace

extern "C" {

int nvmlDeviceGetNvLinkState(Handle handle, unsigned link, int* is_active) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  if (!has_link(handle, link)) return kNotSupported;
  *is_active = 1;
  return kSuccess;
}

// torch looks for the remote ends when memory is shared over NVLink.
int nvmlDeviceGetNvLinkRemoteDeviceType(Handle handle, unsigned link, int* type) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  if (!has_link(handle, link) || !links_go_to_switches()) return kNotSupported;
  *type = kRemoteIsSwitch;
  return kSuccess;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Handle, unsigned, PciInfo*) { return kNotSupported; }

int nvmlDeviceGetP2PStatus(Handle first, Handle second, int capability, int* status) {
  if (!are_devices(first, second) || capability < 0 || capability >= kP2pUnknown) {
    return kInvalidArgument;
  }
  const bool are_peers =
      virtual_gpu::can_access_peer(*device(), ordinal_of(first), ordinal_of(second));
  *status = are_peers ? kP2pOk : kP2pNotSupported;
  return kSuccess;
}

/// As in machines with two processors, each with half of the devices.
int nvmlDeviceGetTopologyCommonAncestor(Handle first, Handle second, int* level) {
  if (!are_devices(first, second)) return kInvalidArgument;
  const int half = (device()->spec.device_count + 1) / 2;
  const bool share_processor = (ordinal_of(first) < half) == (ordinal_of(second) < half);
  *level = first == second ? kInternal : share_processor ? kNode : kSystem;
  return kSuccess;
}

int nvmlDeviceGetMigMode(Handle handle, unsigned* current, unsigned* pending) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  if (!can_be_sliced()) return kNotSupported;
  *current = *pending = 0;
  return kSuccess;
}

int nvmlDeviceGetEccMode(Handle handle, int* current, int* pending) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  *current = *pending =
      *virtual_gpu::device_attribute(*device(), ordinal_of(handle), cudaDevAttrEccEnabled);
  return kSuccess;
}

int nvmlDeviceGetPowerManagementLimit(Handle handle, unsigned* milliwatts) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  if (device()->spec.board_watts == 0) return kNotSupported;
  *milliwatts = static_cast<unsigned>(device()->spec.board_watts) * 1000;
  return kSuccess;
}
int nvmlDeviceGetPowerManagementDefaultLimit(Handle handle, unsigned* milliwatts) {
  return nvmlDeviceGetPowerManagementLimit(handle, milliwatts);
}
int nvmlDeviceGetEnforcedPowerLimit(Handle handle, unsigned* milliwatts) {
  return nvmlDeviceGetPowerManagementLimit(handle, milliwatts);
}

/// The runtime's clock rates (device_attributes.cpp), in MHz.
int nvmlDeviceGetMaxClockInfo(Handle handle, int clock, unsigned* megahertz) {
  if (ordinal_of(handle) < 0) return kInvalidArgument;
  const auto kilohertz =
      virtual_gpu::device_attribute(*device(), ordinal_of(handle), clock_attribute(clock));
  if (!kilohertz) return kNotSupported;
  *megahertz = static_cast<unsigned>(*kilohertz) / 1000;
  return kSuccess;
}
int nvmlDeviceGetClockInfo(Handle handle, int clock, unsigned* megahertz) {
  return nvmlDeviceGetMaxClockInfo(handle, clock, megahertz);
}
}
