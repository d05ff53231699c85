#include "sim/cli/torch/virtual_gpu_setup.h"

#include <cstdio>
#include <stdexcept>

#include "estimator/base/errors.h"
#include "estimator/compute/board_power.h"
#include "sim/virtual_gpu/spec.h"

namespace sim {

namespace fs = std::filesystem;

namespace {

/// The NVLink connections of one GPU, by its link: NVIDIA's data sheets of P100, V100, A100, H100,
/// B200, GB200 and VR200, which are the bandwidths of data/links.json over those of one connection
/// (20, 25 and 50 GB/s); H800: SimAI (the link's source).
constexpr struct {
  const char* link;
  int connections;
} kNvlinks[] = {
    {"nvlink1", 4},
    {"nvlink2", 6},
    {"nvlink3", 12},
    {"nvlink4", 18},
    {"nvlink4-h800", 8},
    {"nvlink5", 18},
    {"nvl72", 18},
    {"nvl72-gen6", 36},
};

/// A Grace Hopper's NVLink is that of its processor: no other GPU is behind it.
int nvlinks_of(const estimator::Gpu& gpu) {
  if (gpu.nvlink_domain_gpus == 1) return 0;
  for (const auto& known : kNvlinks) {
    if (gpu.default_intra_link == known.link) return known.connections;
  }
  return 0;
}

int board_watts_of(const estimator::Gpu& gpu) {
  const estimator::BoardPower* board = estimator::board_power(gpu);
  return board == nullptr ? 0 : static_cast<int>(board->limit_watts);
}

}  // namespace

std::string virtual_gpu_setting(const estimator::Gpu& gpu, const VirtualGpuOptions& options) {
  virtual_gpu::VirtualGpuSpec spec;
  spec.name = gpu.cuda_name;
  spec.multiprocessors = static_cast<int>(gpu.multiprocessors);
  spec.memory_bytes = options.memory_bytes;
  spec.l2_bytes = static_cast<int>(gpu.l2_bytes);
  spec.outside_bytes = options.outside_bytes;
  spec.device_count = options.device_count;
  spec.nvlinks = nvlinks_of(gpu);
  spec.board_watts = board_watts_of(gpu);
  spec.ordered_events = options.ordered_events;
  if (std::sscanf(gpu.compute_capability.c_str(),
                  "%d.%d",
                  &spec.capability_major,
                  &spec.capability_minor) != 2) {
    throw std::logic_error("the GPU database has no compute capability for " + gpu.id);
  }
  return virtual_gpu::to_environment(spec);
}

std::unique_ptr<Preload> virtual_gpu_preload(const std::string& way_out,
                                             const fs::path& folder,
                                             const std::string& prefix) {
  try {
    return std::make_unique<Preload>(folder / "virtual_gpu", prefix);
  } catch (const estimator::UserError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw estimator::UserError(
        {.what = "the virtual GPU cannot be used", .where = error.what(), .help = way_out},
        estimator::ExitCode::kMachineLacks);
  }
}

}  // namespace sim
