#include "sim/cli/process/exec_process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>

#include "estimator/base/errors.h"
#include "estimator/base/files.h"
#include "sim/cli/process/descendants.h"
#include "sim/cli/process/program_torch.h"
#include "sim/cli/process/subprocess.h"
#include "sim/cli/process/temporary_folder.h"
#include "sim/cli/process/virtual_gpu_setup.h"
#include "sim/exec/settings.h"
#include "sim/virtual_gpu/spec.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::DeviceKind;
using estimator::ExitCode;
using estimator::RankProfile;
using estimator::UserError;
using Clock = std::chrono::steady_clock;

/// More than any rank needs: 16 TiB.
constexpr int64_t kNoLimitBytes = int64_t{1} << 44;
/// For a program that was told to end to do so.
constexpr std::chrono::seconds kEndingTime{60};

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

/// What a real GPU is, the program's process tells.
estimator::DeviceRecord device_of(const ExecJob& job, const Environment& environment) {
  estimator::DeviceRecord device{.kind = job.device, .allocator = allocator_setting(environment)};
  if (job.device != DeviceKind::kVirtual) return device;
  device.gpu = job.gpu->id;
  device.name = job.gpu->cuda_name;
  device.total_bytes = job.gpu->memory_bytes;
  return device;
}

ExecSettings settings_for(const ExecJob& job, int64_t rank, const Environment& environment) {
  return {.command = job.command,
          .rank = rank,
          .world_size = job.world_size,
          .local_rank = local_rank(job, rank),
          .gpus_per_node = job.gpus_per_node,
          .steps = job.steps,
          .device = device_of(job, environment),
          .events = job.events,
          .limit_lifted = job.lift_memory_limit,
          .accept_invented_counts = job.accept_invented_counts,
          .assumed = job.assumed,
          .memory_files = wanted_files(job),
          .memory_folder = job.memory_folder.string(),
          .record = job.record,
          .output_folder = job.output_folder.string(),
          .version = ONERANK_VERSION};
}

void play_virtual_gpu(const ExecJob& job, Environment& environment) {
  environment[virtual_gpu::kEnvironmentVariable] =
      virtual_gpu_setting(*job.gpu,
                          static_cast<int>(job.gpus_per_node),
                          job.lift_memory_limit ? kNoLimitBytes : job.gpu->memory_bytes,
                          job.events == kOrderedEvents);
  // Triton looks for the driver on disk, to link its launchers with it.
  environment["TRITON_LIBCUDA_PATH"] = (job.stubs / "virtual_gpu" / "lib").string();
}

/// Kernels that are compiled at run time are nothing here: no cache may keep them.
void keep_kernel_caches_away(const fs::path& folder, Environment& environment) {
  environment["USE_PYTORCH_KERNEL_CACHE"] = "0";
  environment["TRITON_CACHE_DIR"] = (folder / "triton").string();
  environment["TORCHINDUCTOR_CACHE_DIR"] = (folder / "inductor").string();
}

SubprocessCommand command_for(const ExecJob& job,
                              int64_t rank,
                              const virtual_gpu::Preload& preload,
                              const fs::path& scratch,
                              const Environment& outer) {
  const fs::path folder = job.stubs / "exec";
  Environment environment = launcher_environment(job, rank, outer);
  preload_first((folder / "libonerank_exec_hooks.so").string() + ":" + preload.value(),
                environment);
  environment[kExecRecorderVariable] = (folder / "libonerank_exec_recorder.so").string();
  environment[kExecSettingsVariable] = estimator::to_json(settings_for(job, rank, outer)).dump();
  if (job.device == DeviceKind::kVirtual) {
    play_virtual_gpu(job, environment);
    keep_kernel_caches_away(scratch, environment);
  }
  return {.program = job.command.front(),
          .arguments = {job.command.begin() + 1, job.command.end()},
          .environment = std::move(environment),
          .shares_output = true,
          .output_to_error = job.output_to_error};
}

/// Ends a program that takes too long, or does not end though its profile is written.
class Patience {
 public:
  Patience(const ExecJob& job, fs::path profile)
      : timeout_(job.timeout_seconds), profile_(std::move(profile)), start_(Clock::now()) {}

  /// True when the program is to be killed.
  bool is_over() {
    const auto now = Clock::now();
    std::error_code ignored;
    if (!written_ && fs::exists(profile_, ignored)) written_ = now;
    if (written_) return now - *written_ > kEndingTime;
    timed_out_ = timeout_.count() > 0 && now - start_ > timeout_;
    return timed_out_;
  }
  bool timed_out() const { return timed_out_; }

 private:
  std::chrono::seconds timeout_;
  fs::path profile_;
  Clock::time_point start_;
  std::optional<Clock::time_point> written_;
  bool timed_out_ = false;
};

std::string shown(const std::vector<std::string>& command) {
  return fmt::format("{}", fmt::join(command, " "));
}

[[noreturn]] void fail(const ExecJob& job, std::string what, std::string help, ExitCode code) {
  throw UserError({.what = std::move(what), .where = shown(job.command), .help = std::move(help)},
                  code);
}

void throw_if_timed_out(const ExecJob& job, const Patience& patience) {
  if (!patience.timed_out()) return;
  fail(job,
       fmt::format("the program was ended after {} s", job.timeout_seconds),
       "it hangs, or needs longer: give --steps K, or a larger --timeout (0: none)",
       ExitCode::kMachineLacks);
}

/// A profile of a run that went on with a wrong answer must not pass for a result.
void throw_if_unanswered(const ExecJob& job, const RankProfile& profile, const fs::path& path) {
  const auto& unanswered = profile.program->unanswered;
  if (unanswered.empty()) return;
  fs::remove(path);
  fail(
      job,
      fmt::format("the program asked for what cannot be invented: {}", fmt::join(unanswered, ", ")),
      fmt::format(
          "take that out of the program{}; for counts that do not matter to memory, give "
          "--accept-invented-counts",
          job.assumed.fullest_expert ? "" : "; for a router's counts, give --expert-balance"),
      ExitCode::kMachineLacks);
}

void throw_if_failed(const ExecJob& job, const SubprocessEnd& end) {
  if (end.signal_number != 0) {
    fail(job,
         fmt::format("the program was killed by signal {} ({})",
                     end.signal_number,
                     strsignal(end.signal_number)),
         end.signal_number == SIGKILL ? "probably this machine ran out of memory"
                                      : "see its output above",
         ExitCode::kMachineLacks);
  }
  if (end.exit_code == 0) return;
  fail(job,
       fmt::format("the program ended with exit code {}", end.exit_code),
       is_python(job.command)
           ? "see its output above"
           : fmt::format("see its output above; a torch other than {} is only found where the "
                         "program is given as its Python and a script",
                         ONERANK_TORCH_VERSION),
       ExitCode::kBadInput);
}

}  // namespace

RankProfile exec_rank(const ExecJob& job,
                      int64_t rank,
                      const Environment& environment,
                      const Interrupts& interrupts) {
  const auto preload = virtual_gpu_preload("run scripts/quickstart, which builds it",
                                           job.stubs,
                                           job.device == DeviceKind::kVirtual ? "" : kStubOfNccl);
  const TemporaryFolder scratch;
  const Descendants descendants;
  const fs::path path = job.output_folder / estimator::profile_file_name(rank);
  fs::remove(path);
  Patience patience(job, path);
  const SubprocessHooks hooks = {.on_output_line = [](std::string_view) {},
                                 .on_tick = [] {},
                                 .is_to_end = [&] { return patience.is_over(); }};
  const SubprocessEnd end = run_subprocess(
      command_for(job, rank, *preload, scratch.path(), environment), hooks, interrupts);

  if (!fs::exists(path)) {
    throw_if_timed_out(job, patience);
    throw_if_failed(job, end);
    fail(job,
         "the program did not use the GPU",
         "it must run a torch of `onerank list torch` on the device cuda",
         ExitCode::kMachineLacks);
  }
  RankProfile profile = estimator::read_rank_profile(estimator::read_file(path), path.string());
  throw_if_unanswered(job, profile, path);
  if (end.was_ended || profile.out_of_memory) return profile;
  throw_if_failed(job, end);
  return profile;
}

}  // namespace sim
