// The program nvidia-smi, for programs that ask it which GPUs there are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace sim {

/// What the virtual GPU is, the same on each device.
struct ShownGpu {
  std::string name;                ///< as CUDA has it
  std::string compute_capability;  ///< "9.0"
  int64_t memory_bytes = 0;
  int64_t used_bytes = 0;  ///< by CUDA's context and libraries
  int64_t devices = 1;
};

/// Makes `folder` and, in it, a program nvidia-smi that tells of these devices: by itself, with -L,
/// and with --query-gpu of names, numbers, memory and versions. It refuses any other argument, and
/// says so.
void write_nvidia_smi(const std::filesystem::path& folder, const ShownGpu& gpu);

}  // namespace sim
