#include "sim/tracking/device_record.h"

#include <dlfcn.h>

#include <array>

#include "estimator/hardware/hardware.h"

namespace sim {
namespace {

using estimator::DeviceKind;

/// A function of the CUDA driver, whose stub the virtual GPU has too; null if there is none. The
/// runtime opens the real one where a search of all libraries does not see it.
template <class Function>
Function driver_function(const char* name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(driver, name));
}

std::string device_name() {
  const auto get_name = driver_function<int (*)(char*, int, int)>("cuDeviceGetName");
  std::array<char, 256> name{};
  if (get_name == nullptr || get_name(name.data(), static_cast<int>(name.size()), 0) != 0)
    return "";
  return name.data();
}

int64_t device_bytes() {
  const auto get_bytes = driver_function<int (*)(size_t*, int)>("cuDeviceTotalMem_v2");
  size_t bytes = 0;
  return get_bytes != nullptr && get_bytes(&bytes, 0) == 0 ? static_cast<int64_t>(bytes) : 0;
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
  const std::string name = device_name();
  return {.kind = kind, .gpu = database_id(name), .name = name, .total_bytes = device_bytes()};
}

}  // namespace sim
