#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/virtual_gpu/cudart/gpu_memory.h"
#include "sim/virtual_gpu/cudart/kernel_table.h"

namespace virtual_gpu {

struct LaunchArguments {
  std::vector<uint64_t> addresses;  ///< all words that are addresses of device memory
  std::vector<int32_t> numbers;     ///< all parameters of four bytes
};

/// What a kernel was given. Empty if it is not known how long the parameters are.
std::optional<LaunchArguments> launch_arguments(const Kernel& kernel,
                                                void* const* arguments,
                                                const DeviceMemory& memory);

}  // namespace virtual_gpu
