// What this process may use of the machine: less than all of it in a container, or under taskset.
#pragma once

#include <cstdint>
#include <filesystem>

namespace estimator {

struct MachineShare {
  int64_t processors = 1;
  int64_t memory_bytes = 0;  ///< that can be taken without swapping; 0: not known
};

/// Processors are those of the affinity mask, or fewer where a group of processes (cgroup v2)
/// around this one has less time of them (cpu.max). Memory is MemAvailable, or less where such a
/// group has less left of its memory.max; what the kernel can drop of its files at once
/// (inactive_file) is left. Groups of version 1 are not read. `root` is where proc/ and sys/ are.
MachineShare machine_share(const std::filesystem::path& root = "/");

}  // namespace estimator
