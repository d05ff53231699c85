#include "sim/cli/process/virtual_gpu_setup.h"

#include <cstdio>
#include <stdexcept>

#include "estimator/base/errors.h"
#include "sim/virtual_gpu/spec.h"

namespace sim {

namespace fs = std::filesystem;

std::string virtual_gpu_setting(const estimator::Gpu& gpu, const VirtualGpuOptions& options) {
  virtual_gpu::VirtualGpuSpec spec;
  spec.name = gpu.cuda_name;
  spec.multiprocessors = static_cast<int>(gpu.multiprocessors);
  spec.memory_bytes = options.memory_bytes;
  spec.l2_bytes = static_cast<int>(gpu.l2_bytes);
  spec.outside_bytes = options.outside_bytes;
  spec.device_count = options.device_count;
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
