#include "estimator/base/machine_share.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace estimator {
namespace {

namespace fs = std::filesystem;

/// The number after the word `name` in a file of names and numbers.
std::optional<int64_t> number_after(const fs::path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    int64_t number = 0;
    if (word == name && file >> number) return number;
  }
  return std::nullopt;
}

/// The one number in a file; empty for "max", and without the file.
std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

/// The folders of the groups around this process, the innermost one first.
std::vector<fs::path> groups_around(const fs::path& root) {
  constexpr std::string_view kVersion2 = "0::/";
  const fs::path top = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(file, line) && !line.starts_with(kVersion2)) {
  }
  if (!line.starts_with(kVersion2)) return {};
  std::vector<fs::path> folders;
  for (fs::path group = line.substr(kVersion2.size()); !group.empty();
       group = group.parent_path()) {
    folders.push_back(top / group);
  }
  folders.push_back(top);
  return folders;
}

int64_t processors_of_affinity() {
  cpu_set_t own;
  if (sched_getaffinity(0, sizeof(own), &own) != 0) return 1;
  return std::max(1, CPU_COUNT(&own));
}

/// Empty where the group may use all processors.
std::optional<int64_t> processors_of(const fs::path& group) {
  std::ifstream file(group / "cpu.max");  // "QUOTA PERIOD", or "max PERIOD"
  int64_t quota = 0, period = 0;
  if (!(file >> quota >> period) || period <= 0) return std::nullopt;
  return std::max<int64_t>(1, quota / period);
}

/// Empty where the group has no limit.
std::optional<int64_t> bytes_left_in(const fs::path& group) {
  const auto most = number_in(group / "memory.max");
  const auto used = number_in(group / "memory.current");
  if (!most || !used) return std::nullopt;
  const int64_t droppable = number_after(group / "memory.stat", "inactive_file").value_or(0);
  return std::max<int64_t>(1, *most - *used + droppable);
}

}  // namespace

MachineShare machine_share(const fs::path& root) {
  constexpr int64_t kKibibyte = 1024;
  MachineShare share{
      .processors = processors_of_affinity(),
      .memory_bytes = number_after(root / "proc/meminfo", "MemAvailable:").value_or(0) * kKibibyte};
  for (const fs::path& group : groups_around(root)) {
    if (const auto processors = processors_of(group)) {
      share.processors = std::min(share.processors, *processors);
    }
    const auto left = bytes_left_in(group);
    if (!left) continue;
    share.memory_bytes = share.memory_bytes == 0 ? *left : std::min(share.memory_bytes, *left);
  }
  return share;
}

}  // namespace estimator
