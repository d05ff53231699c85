// Finds the virtual GPU's libraries, and the settings that make a process use them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "estimator/hardware/hardware.h"
#include "sim/cli/process/environment.h"
#include "sim/cli/torch/installation.h"
#include "sim/cli/torch/preload.h"

namespace sim {

/// Options with the same meaning as in virtual_gpu::VirtualGpuSpec.
struct VirtualGpuOptions {
  int device_count = 1;
  int64_t memory_bytes = 0;
  int64_t outside_bytes = 0;
  bool ordered_events = false;
};

/// The value of ONERANK_VIRTUAL_GPU for a process with such GPUs.
std::string virtual_gpu_setting(const estimator::Gpu& gpu, const VirtualGpuOptions& options);

/// The file names of the stub of NCCL begin with this.
inline constexpr const char* kStubOfNccl = "libnccl.so";

/// Preloads the virtual GPU's libraries in `folder`, or only those whose names begin with `prefix`.
/// Throws UserError (this machine lacks something) when they were not built; `way_out` is the help
/// of the message.
std::unique_ptr<Preload> virtual_gpu_preload(const std::string& way_out,
                                             const std::filesystem::path& folder = parts_folder(),
                                             const std::string& prefix = "");

}  // namespace sim
