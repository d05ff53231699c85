#include "sim/cli/ranks/rank_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "estimator/base/error_document.h"
#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/machine.h"
#include "estimator/hardware/hardware.h"
#include "sim/cli/torch/rank_torch.h"
#include "sim/cli/torch/virtual_gpu_setup.h"
#include "sim/virtual_gpu/spec.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::DeviceKind;
using estimator::ExitCode;
using estimator::Plan;
using estimator::UserError;

constexpr const char* kQuickstart = "run scripts/quickstart, which installs and builds all of it";

/// The libraries to preload. Nothing for `cuda`; the CPU's torch may need them to be loaded, but a
/// torch without CUDA does not, and has none built.
std::unique_ptr<Preload> preload_for(DeviceKind device) {
  if (device == DeviceKind::kCuda) return nullptr;
  if (device == DeviceKind::kCpu && !fs::exists(parts_folder() / "virtual_gpu/preload")) {
    return nullptr;
  }
  return virtual_gpu_preload(fmt::format("{}, or give --device cpu", kQuickstart));
}

/// `gpu_id` is what a preloaded virtual GPU is.
Environment rank_environment(const std::string& gpu_id,
                             const estimator::MemoryConfig& memory,
                             const Preload* preload,
                             const Interrupts& interrupts,
                             Environment environment) {
  const bool is_own = !find_variable(environment, kRankProcessVariable);
  if (const auto torch = is_own ? rank_torch(environment, interrupts) : std::nullopt) {
    put_first((*torch / "lib").string(), kLibraryPathVariable, environment);
  }
  environment.erase(kAllocatorVariable);
  environment.erase(kOldAllocatorVariable);
  if (!memory.allocator.empty()) environment[kOldAllocatorVariable] = memory.allocator;
  environment.erase(kCublasWorkspaceVariable);
  if (!memory.cublas_workspace.empty()) {
    environment[kCublasWorkspaceVariable] = memory.cublas_workspace;
  }
  if (preload == nullptr) return environment;
  const estimator::Gpu* gpu = estimator::find_gpu(gpu_id);
  if (gpu == nullptr) throw std::logic_error("a resolved plan names an unknown GPU");
  put_first(preload->value(), kPreloadVariable, environment);
  environment[virtual_gpu::kEnvironmentVariable] =
      virtual_gpu_setting(*gpu, {.memory_bytes = gpu->memory_bytes});
  return environment;
}

/// The line of an error output that says most: the loader's, or else the last one.
std::string telling_line(const std::string& text) {
  std::string telling;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("error while loading shared libraries") != std::string::npos) return line;
    if (!line.empty()) telling = line;
  }
  return telling;
}

/// What most likely killed it. (torch may find no memory before the process can tell it.)
std::string help_for_killed(const SubprocessEnd& end) {
  const bool lacked_memory = end.error_output.find("std::bad_alloc") != std::string::npos;
  return estimator::help_for_killed(lacked_memory ? SIGKILL : end.signal_number,
                                    "try --jobs 1",
                                    "this is a bug in Onerank: please report it with the plan");
}

/// The error that the process left, or the one that it could only print.
std::optional<UserError> error_of(const SubprocessEnd& end, const fs::path& errors_file) {
  if (fs::exists(errors_file)) {
    return estimator::error_in(estimator::read_file(errors_file.string()));
  }
  const bool lacks = end.exit_code == static_cast<int>(ExitCode::kMachineLacks);
  return lacks ? std::optional(estimator::no_memory_error()) : std::nullopt;
}

void throw_if_failed(const SubprocessEnd& end, const fs::path& errors_file) {
  if (end.signal_number != 0) {
    throw estimator::killed_error("the rank process",
                                  end.signal_number,
                                  telling_line(end.error_output),
                                  help_for_killed(end));
  }
  if (end.exit_code == static_cast<int>(ExitCode::kDone) ||
      end.exit_code == static_cast<int>(ExitCode::kDifference)) {
    return;
  }
  constexpr int kCannotLoad = 127;
  if (end.exit_code == kCannotLoad) {
    throw UserError({.what = "the rank process cannot start: torch is missing or has another "
                             "version, or Onerank was built without it",
                     .where = telling_line(end.error_output),
                     .help = kQuickstart},
                    ExitCode::kMachineLacks);
  }
  const auto error = error_of(end, errors_file);
  if (error && end.exit_code == static_cast<int>(error->exit_code())) throw *error;
  throw std::logic_error(
      fmt::format("the rank process ended with exit code {}\n{}", end.exit_code, end.error_output));
}

}  // namespace

fs::path rank_program_file(const Environment& environment) {
  if (const auto given = find_variable(environment, kRankProcessVariable)) return *given;
  return parts_folder() / "onerank-rank";
}

RankProgram::RankProgram(const std::string& gpu_id,
                         const estimator::MemoryConfig& memory,
                         DeviceKind device,
                         const Environment& environment)
    : preload_(preload_for(device)),
      program_(rank_program_file(environment)),
      environment_(rank_environment(gpu_id, memory, preload_.get(), interrupts_, environment)) {}

RankProgram::RankProgram(const Plan& plan, DeviceKind device, const Environment& environment)
    : RankProgram(plan.cluster.gpu, plan.memory, device, environment) {
  estimator::write_file_whole(plan_file().string(), estimator::to_json(plan).dump());
}

RankProgram::RankProgram(DeviceKind device, const Environment& environment)
    : RankProgram(estimator::gpus().front().id, estimator::MemoryConfig{}, device, environment) {}

int RankProgram::run(std::vector<std::string> arguments, const SubprocessHooks& hooks) const {
  const fs::path errors_file = folder() / "errors.json";
  fs::remove(errors_file);
  arguments.insert(arguments.end(), {"--errors", errors_file.string()});
  const SubprocessEnd end = run_subprocess(
      {.program = program_, .arguments = std::move(arguments), .environment = environment_},
      hooks,
      interrupts_);
  throw_if_failed(end, errors_file);
  return end.exit_code;
}

}  // namespace sim
