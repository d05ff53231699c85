#include "sim/virtual_gpu/cudart/launch_arguments.h"

#include <cstring>

namespace virtual_gpu {

std::optional<LaunchArguments> launch_arguments(const Kernel& kernel,
                                                void* const* arguments,
                                                const DeviceMemory& memory) {
  const std::optional<ParameterBytes>& parameters = kernel.found.parameter_bytes;
  if (!parameters) return std::nullopt;
  LaunchArguments known;
  if (parameters->empty()) return known;
  if (arguments == nullptr) return std::nullopt;  // the caller packed them itself
  for (const uint32_t bytes : *parameters) {
    const char* const value = static_cast<const char*>(*arguments++);
    if (bytes == sizeof(int32_t)) {
      std::memcpy(&known.numbers.emplace_back(), value, sizeof(int32_t));
    }
    for (size_t place = 0; place + sizeof(uint64_t) <= bytes; place += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, value + place, sizeof word);
      if (memory.device_at(word)) known.addresses.push_back(word);
    }
  }
  return known;
}

}  // namespace virtual_gpu
