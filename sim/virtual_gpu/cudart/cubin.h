#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace virtual_gpu {

/// Of each parameter of a kernel, in order.
using ParameterBytes = std::vector<uint32_t>;

/// What a kernel takes of a multiprocessor.
struct KernelNeeds {
  int registers_per_thread;
  int static_shared_bytes = 0;  // of a block, without what the device reserves
};

/// What the code of a kernel tells; none of what is damaged.
struct KernelCode {
  std::optional<ParameterBytes> parameter_bytes;
  std::optional<KernelNeeds> needs;
};

/// Each kernel that a cubin holds, by its name. Empty for code of another kind.
std::map<std::string, KernelCode> kernels_in(std::string_view image);

}  // namespace virtual_gpu
