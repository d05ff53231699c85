#pragma once

#include <cuda_runtime_api.h>

#include <optional>

#include "sim/virtual_gpu/cudart/device.h"

namespace virtual_gpu {

/// An attribute of device `ordinal`, by its number, which the runtime (cudaDevAttr...) and the
/// driver (CU_DEVICE_ATTRIBUTE_...) share. None if the virtual GPU does not know it.
std::optional<int> device_attribute(const Device& device, int ordinal, int attribute);

/// Textures, surfaces, clock and bus are not known and left 0.
cudaDeviceProp device_properties(const Device& device, int ordinal);

}  // namespace virtual_gpu
