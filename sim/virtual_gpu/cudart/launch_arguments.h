#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/virtual_gpu/cudart/gpu_memory.h"
#include "sim/virtual_gpu/kernels/kernel_table.h"

namespace virtual_gpu {

struct LaunchArguments {
  std::vector<uint64_t> addresses;  ///< all words that are addresses of device memory
  std::vector<int32_t> numbers;     ///< all parameters of four bytes
};

/// The sizes of the kernel's parameters; null if its code does not say them.
const ParameterBytes* parameters_of(const Kernel& kernel, const CapabilityFacts& facts);

/// What a kernel was given. Empty if `parameters` is null, or if the caller packed the arguments
/// itself, so that `arguments` is null.
std::optional<LaunchArguments> launch_arguments(const ParameterBytes* parameters,
                                                void* const* arguments,
                                                const DeviceMemory& memory);

}  // namespace virtual_gpu
