#include "sim/virtual_gpu/cudart/device.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace virtual_gpu {
namespace {

thread_local int selected_device = 0;

Device* make_device() try {
  const char* text = std::getenv(kEnvironmentVariable);
  if (text == nullptr) {
    throw std::invalid_argument(std::string(kEnvironmentVariable) +
                                " is not set: it tells the virtual GPU which GPU to play");
  }
  const VirtualGpuSpec spec = parse(text);
  const CapabilityFacts* facts = find_capability(spec.capability_major, spec.capability_minor);
  if (facts == nullptr) {
    throw std::invalid_argument(std::string(kEnvironmentVariable) + ": nothing is known of " +
                                "compute capability " + std::to_string(spec.capability_major) +
                                "." + std::to_string(spec.capability_minor));
  }
  const auto capacity_bytes = static_cast<uint64_t>(spec.memory_bytes);
  const auto outside_bytes = static_cast<uint64_t>(spec.outside_bytes);
  return new Device{spec,
                    *facts,
                    DeviceMemory(spec.device_count, capacity_bytes, outside_bytes),
                    Timeline(spec.device_count, spec.ordered_events)};
} catch (const std::invalid_argument& error) {
  std::fprintf(stderr, "onerank: error: %s\n", error.what());
  return nullptr;
}

}  // namespace

Device* device() {
  static Device* const device = make_device();
  return device;
}

int current_device() { return selected_device; }

bool set_current_device(int ordinal) {
  if (ordinal < 0 || ordinal >= device()->spec.device_count) return false;
  selected_device = ordinal;
  return true;
}

KernelTable& kernels() {
  static KernelTable* const table = new KernelTable;
  return *table;
}

WorkLog& work_log() {
  static WorkLog* const log = new WorkLog;
  return *log;
}

HostMemory& host_memory() {
  static HostMemory* const memory = new HostMemory;
  return *memory;
}

HostMemory& managed_memory() {
  static HostMemory* const memory = new HostMemory;
  return *memory;
}

Shadow& shadow() {
  static Shadow* const shadow = new Shadow;
  return *shadow;
}

}  // namespace virtual_gpu
