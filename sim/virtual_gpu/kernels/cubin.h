#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace virtual_gpu {

/// The size in bytes of each parameter of a kernel, in order.
using ParameterBytes = std::vector<uint32_t>;

/// The resources of a multiprocessor that a kernel needs.
struct KernelNeeds {
  int registers_per_thread;
  int static_shared_bytes = 0;  // for one block, without what the device reserves
};

/// What the code of a kernel says; parts that are damaged are empty.
struct KernelCode {
  std::optional<ParameterBytes> parameter_bytes;
  std::optional<KernelNeeds> needs;
};

/// What the kernels of an image say, by name.
using KernelCodes = std::map<std::string, KernelCode, std::less<>>;

/// The kernels in a cubin. Empty for code of another kind.
KernelCodes kernels_in(std::string_view image);

}  // namespace virtual_gpu
