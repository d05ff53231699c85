#pragma once

#include <cuda_runtime_api.h>

#include <optional>

#include "sim/virtual_gpu/cudart/device.h"

namespace virtual_gpu {

/// Whether kernels of one device may use the memory of the other: if NVLink joins the devices.
/// (Over PCIe that depends on the machine's switches; it is taken to be impossible.)
bool can_access_peer(const Device& device, int ordinal, int peer);

/// An attribute of a pair of devices, by the number that cudaDeviceP2PAttr and
/// CUdevice_P2PAttribute share; empty for an unknown one.
std::optional<int> peer_attribute(const Device& device, int attribute, int ordinal, int peer);

/// Allows the current device to use the memory of `peer`, or takes that back. Returns the error of
/// CUDA's function; the driver's has the same number.
cudaError_t enable_peer_access(int peer);
cudaError_t disable_peer_access(int peer);

}  // namespace virtual_gpu
