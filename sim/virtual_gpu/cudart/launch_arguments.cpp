#include "sim/virtual_gpu/cudart/launch_arguments.h"

#include <cstring>

namespace virtual_gpu {

const ParameterBytes* parameters_of(const Kernel& kernel, const CapabilityFacts& facts) {
  const KernelCode* const code =
      kernel.code == nullptr ? &kernel.found : kernel.code->code_of(kernel.name, facts);
  return code != nullptr && code->parameter_bytes ? &*code->parameter_bytes : nullptr;
}

std::optional<LaunchArguments> launch_arguments(const ParameterBytes* parameters,
                                                void* const* arguments,
                                                const DeviceMemory& memory) {
  if (parameters == nullptr) return std::nullopt;
  LaunchArguments known;
  if (parameters->empty()) return known;
  if (arguments == nullptr) return std::nullopt;
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
