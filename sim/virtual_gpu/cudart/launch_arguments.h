#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/virtual_gpu/cudart/device_memory.h"
#include "sim/virtual_gpu/cudart/kernel_table.h"

namespace virtual_gpu {

/// Where the parameters of a launch point into `memory`: every word of them that is such an
/// address. None where it is not known how long the parameters are.
std::optional<std::vector<uint64_t>> device_addresses(const Kernel& kernel,
                                                      void* const* arguments,
                                                      const DeviceMemory& memory);

}  // namespace virtual_gpu
