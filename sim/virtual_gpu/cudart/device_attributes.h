#pragma once

#include <cuda_runtime_api.h>

#include <optional>

#include "sim/virtual_gpu/cudart/device.h"

namespace virtual_gpu {

/// An attribute of device `ordinal`. The runtime (cudaDevAttr...) and the driver
/// (CU_DEVICE_ATTRIBUTE_...) have the same numbers for attributes. Empty if the virtual GPU does
/// not know the attribute.
std::optional<int> device_attribute(const Device& device, int ordinal, int attribute);

/// The properties of a device. Those of textures, surfaces, clock and bus are not known and are 0.
cudaDeviceProp device_properties(const Device& device, int ordinal);

}  // namespace virtual_gpu
