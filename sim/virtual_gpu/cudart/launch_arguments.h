#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/virtual_gpu/cudart/gpu_memory.h"
#include "sim/virtual_gpu/cudart/kernel_table.h"

namespace virtual_gpu {

/// All words in the parameters of a launch that are addresses in `memory`. Empty if it is not known
/// how long the parameters are.
std::optional<std::vector<uint64_t>> device_addresses(const Kernel& kernel,
                                                      void* const* arguments,
                                                      const DeviceMemory& memory);

}  // namespace virtual_gpu
