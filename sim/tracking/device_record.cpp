#include "sim/tracking/device_record.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <dlfcn.h>

#include <array>

#include "estimator/hardware/hardware.h"

namespace sim {
namespace {

using estimator::DeviceKind;

/// From the CUDA driver, whose stub the virtual GPU has too. The runtime opens the real one where a
/// search of all libraries does not see it.
std::string device_name() {
  using GetName = int (*)(char*, int, int);
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return "";
  const auto get_name = reinterpret_cast<GetName>(dlsym(driver, "cuDeviceGetName"));
  std::array<char, 256> name{};
  if (get_name == nullptr || get_name(name.data(), static_cast<int>(name.size()), 0) != 0)
    return "";
  return name.data();
}

/// The GPU that reports this name, or "" when the database has none.
std::string database_id(const std::string& name) {
  for (const estimator::Gpu& gpu : estimator::gpus()) {
    if (gpu.cuda_name == name) return gpu.id;
  }
  return "";
}

}  // namespace

estimator::DeviceRecord device_record(DeviceKind kind) {
  if (kind == DeviceKind::kCpu) return {.kind = kind, .name = "CPU"};
  const auto [free_bytes, total_bytes] = c10::getDeviceAllocator(at::kCUDA)->getMemoryInfo(0);
  const std::string name = device_name();
  return {.kind = kind,
          .gpu = database_id(name),
          .name = name,
          .total_bytes = static_cast<int64_t>(total_bytes)};
}

}  // namespace sim
