#include "sim/cli/input/device_choice.h"

#include <fmt/format.h>

#include <filesystem>
#include "estimator/base/errors.h"

namespace sim {

using estimator::DeviceKind;

namespace {

bool has_driver() {
  std::error_code ignored;
  return std::filesystem::exists("/dev/nvidiactl", ignored) ||
         std::filesystem::exists("/proc/driver/nvidia", ignored);
}

}  // namespace

std::vector<std::string> device_names() {
  std::vector<std::string> names = estimator::names_of<DeviceKind>();
  names.emplace_back("auto");
  return names;
}

estimator::DeviceKind choose_device(const std::string& name) {
  if (name == "auto") return has_driver() ? DeviceKind::kCuda : DeviceKind::kVirtual;
  for (const auto& entry : enum_names(DeviceKind{})) {
    if (name == entry.name) return entry.value;
  }
  throw estimator::UserError({.what = "unknown device",
                              .where = fmt::format("--device = \"{}\"", name),
                              .help = estimator::suggestion(name, device_names())});
}

void require_driver(const std::string& what,
                    const std::string& help,
                    const Environment& environment) {
  const auto file = find_variable(environment, kDriverFileVariable);
  if (file ? std::filesystem::exists(*file) : has_driver()) return;
  throw estimator::UserError(
      {.what = what, .where = "--device cuda: no driver of NVIDIA's is loaded here", .help = help},
      estimator::ExitCode::kMachineLacks);
}

}  // namespace sim
