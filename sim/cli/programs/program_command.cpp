#include "sim/cli/programs/program_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/program/program_estimate.h"
#include "sim/cli/programs/nvidia_smi.h"
#include "sim/cli/programs/program_processes.h"
#include "sim/cli/torch/virtual_gpu_setup.h"
#include "sim/exec/messages/peer_messages.h"
#include "sim/exec/program/settings.h"
#include "sim/virtual_gpu/spec.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::DeviceKind;
using estimator::ExitCode;
using estimator::UserError;

/// More than any rank needs: 16 TiB.
constexpr int64_t kNoLimitBytes = int64_t{1} << 44;

std::string allocator_setting(const Environment& environment) {
  const auto setting = find_variable(environment, kAllocatorVariable);
  return setting ? *setting : find_variable(environment, kOldAllocatorVariable).value_or("");
}

ForEachMemoryFile<bool> wanted_files(const ExecJob& job) {
  ForEachMemoryFile<bool> wanted{};
  for (std::size_t file = 0; file < wanted.size(); ++file) {
    wanted[file] = !job.memory_files[file].empty();
  }
  return wanted;
}

int64_t gpu_bytes(const ExecJob& job) {
  return job.memory_bytes > 0 ? job.memory_bytes : job.gpu->memory_bytes;
}

/// What a real GPU is, the program's process tells.
estimator::DeviceRecord device_record(const ExecJob& job, const Environment& environment) {
  estimator::DeviceRecord device{.kind = job.device, .allocator = allocator_setting(environment)};
  if (job.device != DeviceKind::kVirtual) return device;
  device.gpu = job.gpu->id;
  device.name = job.gpu->cuda_name;
  device.total_bytes = gpu_bytes(job);
  return device;
}

ExecSettings settings_for(const ExecJob& job, int64_t rank, const Environment& environment) {
  return {.command = job.command,
          .rank = rank,
          .world_size = job.world_size,
          .gpus_per_node = job.gpus_per_node,
          .steps = job.steps,
          .device = device_record(job, environment),
          .events = job.events,
          .limit_lifted = job.lift_memory_limit,
          .accept_invented_counts = job.accept_invented_counts,
          .assumed = job.assumed,
          .memory_files = wanted_files(job),
          .record = job.record,
          .version = ONERANK_VERSION};
}

/// Programs that start a rank for each GPU that they see start as many as the world has.
int64_t visible_gpus(const ExecJob& job) {
  if (job.node_is_given || !job.world_is_given || job.world_size == 1) return job.gpus_per_node;
  return std::min(job.gpus_per_node, job.world_size);
}

void play_virtual_gpu(const ExecJob& job, Environment& environment) {
  environment[virtual_gpu::kEnvironmentVariable] =
      virtual_gpu_setting(*job.gpu,
                          {.device_count = static_cast<int>(visible_gpus(job)),
                           .memory_bytes = job.lift_memory_limit ? kNoLimitBytes : gpu_bytes(job),
                           .outside_bytes = estimator::program_outside_bytes(*job.gpu),
                           .ordered_events = job.events == kOrderedEvents});
  // Triton looks for the driver on disk, to link its launchers with it.
  environment["TRITON_LIBCUDA_PATH"] = (job.stubs / "virtual_gpu" / "lib").string();
}

void offer_nvidia_smi(const ExecJob& job, const fs::path& folder, Environment& environment) {
  if (!find_variable(environment, "PATH")) return;
  write_nvidia_smi(folder,
                   {.name = job.gpu->cuda_name,
                    .compute_capability = job.gpu->compute_capability,
                    .memory_bytes = gpu_bytes(job),
                    .used_bytes = estimator::program_outside_bytes(*job.gpu),
                    .devices = visible_gpus(job)});
  put_first(folder.string(), "PATH", environment);
}

/// Kernels that are compiled at run time are nothing here: no cache may keep them. DeepSpeed asks
/// `df` of which kind the folder's disk is.
void keep_kernel_caches_away(const fs::path& folder, Environment& environment) {
  environment["USE_PYTORCH_KERNEL_CACHE"] = std::string("0");
  for (const auto& [variable, name] : {std::pair("TRITON_CACHE_DIR", "triton"),
                                       std::pair("TORCHINDUCTOR_CACHE_DIR", "inductor")}) {
    fs::create_directories(folder / name);
    environment[variable] = (folder / name).string();
  }
}

/// Bytes that are no UTF-8 become U+FFFD: the program itself is given them as they are.
std::string settings_text(const ExecSettings& settings) {
  return estimator::to_json(settings).dump(
      -1, ' ', false, estimator::Json::error_handler_t::replace);
}

}  // namespace

void check_recorder(const ExecJob& job) {
  for (const char* library : {kHooks, kRecorder}) {
    if (fs::exists(job.stubs / "exec" / library)) continue;
    throw UserError({.what = fmt::format("{} is not there", library),
                     .where = (job.stubs / "exec").string(),
                     .help = "run scripts/quickstart, which builds it"},
                    ExitCode::kMachineLacks);
  }
}

fs::path process_folder(const fs::path& scratch) { return scratch / "processes"; }

bool has_input(const ExecJob& job) { return job.peers_folder.empty(); }

SubprocessCommand program_command(const ExecJob& job,
                                  int64_t rank,
                                  const std::string& preload,
                                  const fs::path& scratch,
                                  const Environment& outer) {
  const fs::path folder = job.stubs / "exec";
  Environment environment = launcher_environment(job, rank, outer);
  put_first(preload, kPreloadVariable, environment);
  environment[kExecRecorderVariable] = (folder / kRecorder).string();
  if (!job.peers_folder.empty()) environment[kPeersVariable] = job.peers_folder.string();
  environment[kExecWantedRankVariable] = std::to_string(rank);
  environment[kExecFolderVariable] = process_folder(scratch).string();
  environment[virtual_gpu::kRefusalsVariable] =
      (process_folder(scratch) / kRefusedFunctions).string();
  if (job.timeout_seconds > 0) {
    const auto deadline =
        std::chrono::system_clock::now() + std::chrono::seconds(job.timeout_seconds);
    environment[kExecDeadlineVariable] =
        std::to_string(std::chrono::system_clock::to_time_t(deadline));
  }
  environment[kExecSettingsVariable] = settings_text(settings_for(job, rank, outer));
  if (job.device == DeviceKind::kVirtual) {
    play_virtual_gpu(job, environment);
    offer_nvidia_smi(job, scratch / "bin", environment);
    keep_kernel_caches_away(scratch, environment);
  }
  return {.program = job.command.front(),
          .arguments = {job.command.begin() + 1, job.command.end()},
          .environment = std::move(environment),
          .shares_output = true,
          .output_to_error = job.output_to_error,
          .shares_input = has_input(job)};
}

}  // namespace sim
