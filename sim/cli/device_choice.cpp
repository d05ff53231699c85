#include "sim/cli/device_choice.h"

#include <fmt/format.h>

#include <filesystem>

namespace sim {

using estimator::DeviceKind;

estimator::DeviceKind choose_device(const std::string& name) {
  if (name == "auto") {
    std::error_code ignored;
    const bool has_driver = std::filesystem::exists("/dev/nvidiactl", ignored) ||
                            std::filesystem::exists("/proc/driver/nvidia", ignored);
    return has_driver ? DeviceKind::kCuda : DeviceKind::kVirtual;
  }
  for (const auto& entry : enum_names(DeviceKind{})) {
    if (name == entry.name) return entry.value;
  }
  std::vector<std::string> known = estimator::names_of<DeviceKind>();
  known.emplace_back("auto");
  throw estimator::UserError({.what = "unknown device",
                              .where = fmt::format("--device = \"{}\"", name),
                              .help = estimator::suggestion(name, known)});
}

}  // namespace sim
