#include "sim/virtual_gpu/cudart/launch_arguments.h"

#include <cstring>

namespace virtual_gpu {

std::optional<std::vector<uint64_t>> device_addresses(const Kernel& kernel,
                                                      void* const* arguments,
                                                      const DeviceMemory& memory) {
  const std::optional<ParameterBytes>& parameters = kernel.found.parameter_bytes;
  if (!parameters) return std::nullopt;
  std::vector<uint64_t> addresses;
  if (parameters->empty()) return addresses;
  if (arguments == nullptr) return std::nullopt;  // the caller packed them itself
  for (const uint32_t bytes : *parameters) {
    const char* const value = static_cast<const char*>(*arguments++);
    for (size_t place = 0; place + sizeof(uint64_t) <= bytes; place += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, value + place, sizeof word);
      if (memory.device_at(word)) addresses.push_back(word);
    }
  }
  return addresses;
}

}  // namespace virtual_gpu
