// Where the virtual GPU lies and how a process is told to play one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "estimator/hardware/hardware.h"
#include "sim/cli/process/environment.h"
#include "sim/cli/process/installation.h"
#include "sim/cli/process/preload.h"

namespace sim {

/// As virtual_gpu::VirtualGpuSpec has them.
struct VirtualGpuOptions {
  int device_count = 1;
  int64_t memory_bytes = 0;
  int64_t outside_bytes = 0;
  bool ordered_events = false;
};

/// The value of ONERANK_VIRTUAL_GPU for a process with such GPUs.
std::string virtual_gpu_setting(const estimator::Gpu& gpu, const VirtualGpuOptions& options);

/// The names of the stub of NCCL begin with this.
inline constexpr const char* kStubOfNccl = "libnccl.so";

/// The virtual GPU's libraries in `folder`, or those of them whose names begin with `prefix`.
/// Throws UserError (this machine lacks something) when it was not built; `way_out` is its help.
std::unique_ptr<Preload> virtual_gpu_preload(const std::string& way_out,
                                             const std::filesystem::path& folder = parts_folder(),
                                             const std::string& prefix = "");

}  // namespace sim
