#include "sim/cli/commands/exec_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "estimator/base/range.h"
#include "estimator/base/text.h"
#include "estimator/base/units.h"
#include "estimator/hardware/hardware.h"
#include "estimator/program/program_estimate.h"
#include "sim/cli/input/device_choice.h"
#include "sim/cli/programs/srun.h"
#include "sim/cli/torch/virtual_gpu_setup.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

using estimator::DeviceKind;
using estimator::UserError;

int64_t number_in(const std::string& text, const std::string& source, int64_t low, int64_t high) {
  const int64_t value = parse_whole_number(text, source);
  estimator::require_in_range(value, {static_cast<double>(low), static_cast<double>(high)}, source);
  return value;
}

/// A flag, or else a variable, or else `otherwise`.
int64_t flag_or_variable(const std::string& flag,
                         const char* flag_name,
                         const char* variable,
                         const Environment& environment,
                         int64_t low,
                         int64_t otherwise) {
  if (!flag.empty()) return number_in(flag, flag_name, low, estimator::kMostRanks);
  if (const auto value = find_variable(environment, variable)) {
    return number_in(*value, variable, low, estimator::kMostRanks);
  }
  return otherwise;
}

int64_t rank_in(const std::string& text, const char* source, const ExecJob& job) {
  const int64_t rank = parse_whole_number(text, source);
  if (!job.world_is_given) return number_in(text, source, 0, estimator::kMostRanks - 1);
  if (job.world_size == 1 && rank > 0) {
    throw UserError({.what = "the world has one rank",
                     .where = fmt::format("{} = {}", source, rank),
                     .help = "give --world-size N"});
  }
  return number_in(text, source, 0, job.world_size - 1);
}

/// They say what the virtual GPU plays or invents.
constexpr const char* kVirtualFlags[] = {"--gpu",
                                         "--events",
                                         "--memory",
                                         "--no-memory-limit",
                                         "--accept-invented-counts",
                                         "--assume",
                                         "--expert-balance"};

DeviceKind device_of(const ExecFlags& flags, const CLI::App& app, const Environment& environment) {
  const DeviceKind device = choose_device(flags.device);
  if (device == DeviceKind::kCpu) {
    throw UserError({.what = "`onerank exec` runs a program only on a GPU, real or virtual",
                     .where = "--device cpu",
                     .help = "use --device virtual, or cuda"});
  }
  if (device == DeviceKind::kVirtual) return device;
  for (const char* flag : kVirtualFlags) {
    if (app.count(flag) == 0) continue;
    throw UserError({.what = "the flag is for the virtual GPU only",
                     .where = fmt::format("{} with --device cuda", flag),
                     .help = fmt::format("leave out {}, or use --device virtual", flag)});
  }
  require_driver("there is no GPU to run the program on",
                 "use --device virtual, or run it on a machine with a GPU",
                 environment);
  return device;
}

void check_events(const std::string& mode) {
  const std::vector<std::string> modes(std::begin(kEventModes), std::end(kEventModes));
  if (std::find(modes.begin(), modes.end(), mode) != modes.end()) return;
  throw UserError({.what = "unknown mode of events",
                   .where = fmt::format("--events {}", mode),
                   .help = estimator::suggestion(mode, modes)});
}

/// "loss=2.5"
AssumedNumber assumed_number(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::vector<std::string> names(std::begin(kAssumedNames), std::end(kAssumedNames));
  if (equals == text.npos || std::find(names.begin(), names.end(), name) == names.end()) {
    throw UserError({.what = "no value with this name can be assumed",
                     .where = fmt::format("--assume {}", text),
                     .help = fmt::format("use NAME=VALUE with one of {}", fmt::join(names, ", "))});
  }
  return {.name = name,
          .value = parse_real_number(text.substr(equals + 1), fmt::format("--assume {}", name))};
}

/// "balanced" or "imbalance:1.5"; empty for "".
std::optional<double> fullest_expert(const std::string& text) {
  constexpr std::string_view kImbalance = "imbalance:";
  if (text.empty()) return std::nullopt;
  if (text == "balanced") return 1.0;
  if (text.starts_with(kImbalance)) {
    const double factor = parse_real_number(text.substr(kImbalance.size()), "--expert-balance");
    if (factor >= 1) return factor;
  }
  throw UserError(
      {.what = "no such balance of experts",
       .where = fmt::format("--expert-balance {}", text),
       .help =
           "use balanced, or imbalance:F: the first expert gets F (at least 1) times the mean"});
}

AssumedValues assumed_values(const ExecFlags& flags) {
  AssumedValues values{.fullest_expert = fullest_expert(flags.expert_balance)};
  for (const std::string& text : flags.assumed) values.numbers.push_back(assumed_number(text));
  return values;
}

/// 0 if none is given.
int64_t memory_of(const ExecFlags& flags) {
  constexpr double kMostGib = 16 << 10;
  if (flags.memory.empty()) return 0;
  const double gib = parse_real_number(flags.memory, "--memory");
  if (gib > 0 && gib <= kMostGib) return static_cast<int64_t>(gib * estimator::kGiB);
  throw UserError({.what = "no GPU has so much memory",
                   .where = "--memory " + flags.memory,
                   .help = fmt::format("use GiB, more than 0 and at most {}", kMostGib)});
}

/// A virtual GPU without room for what a process holds from its start could not be made.
void refuse_memory_below_context(const ExecJob& job, const ExecFlags& flags) {
  const bool has_limit = job.memory_bytes > 0 && !job.lift_memory_limit;
  if (job.device != DeviceKind::kVirtual || !has_limit) return;
  const int64_t outside = estimator::program_outside_bytes(*job.gpu);
  if (job.memory_bytes > outside) return;
  throw UserError({.what = fmt::format("CUDA's context and libraries alone take {}",
                                       estimator::format_gib(outside)),
                   .where = "--memory " + flags.memory,
                   .help = "give more than that"});
}

/// In place of srun its program is run, as the task of the rank. Tasks of which each has a node are
/// the ranks, unless they are launchers.
void take_srun(ExecJob& job) {
  const auto srun = parse_srun(job.command);
  if (!srun) return;
  job.command = srun->program;
  if (!job.world_is_given && srun->tasks) {
    job.world_size =
        number_in(std::to_string(*srun->tasks), "srun --ntasks", 1, estimator::kMostRanks);
    job.world_is_given = !srun->has_a_task_for_each_node();
    if (!job.world_is_given) job.slurm_nodes = *srun->tasks;
  }
  job.slurm_tasks = srun->tasks.value_or(job.world_size);
  check_slurm_job({.world_size = job.world_size, .tasks = job.slurm_tasks});
}

const estimator::Gpu* gpu_named(const std::string& name) {
  const estimator::Gpu* gpu = estimator::find_gpu(name);
  if (gpu != nullptr) return gpu;
  throw UserError({.what = "unknown GPU",
                   .where = fmt::format("--gpu {}", name),
                   .help = estimator::gpu_help(name)});
}

void set_world(ExecJob& job,
               const ExecFlags& flags,
               const CLI::App& app,
               const Environment& environment) {
  job.world_size =
      flag_or_variable(flags.world_size, "--world-size", kWorldSizeVariable, environment, 1, 1);
  job.world_is_given =
      !flags.world_size.empty() || find_variable(environment, kWorldSizeVariable).has_value();
  take_srun(job);
  job.gpus_per_node =
      number_in(flags.gpus_per_node, "--gpus-per-node", 1, estimator::kMostGpusOfNode);
  job.node_is_given = app.count("--gpus-per-node") > 0;
}

void set_end(ExecJob& job, const ExecFlags& flags, const CLI::App& app) {
  constexpr int64_t kMost = 1'000'000'000;
  job.steps = number_in(flags.steps, "--steps", 0, kMost);
  if (flags.no_recording && app.count("--steps") > 0) {
    throw UserError({.what = "steps are counted by what is recorded",
                     .where = fmt::format("--steps {} with --no-recording", job.steps),
                     .help = "leave one of them out"});
  }
  job.timeout_seconds = number_in(flags.timeout, "--timeout", 0, kMost);
}

void set_memory(ExecJob& job, const ExecFlags& flags) {
  job.memory_bytes = memory_of(flags);
  job.lift_memory_limit = flags.no_memory_limit;
  refuse_memory_below_context(job, flags);
}

std::vector<int64_t> ranks_in_list(const std::string& list, const ExecJob& job) {
  std::set<int64_t> ranks;
  for (const std::string& rank : estimator::split(list, ',')) {
    ranks.insert(rank_in(rank, "--ranks", job));
  }
  return {ranks.begin(), ranks.end()};
}

}  // namespace

ExecJob exec_job(const ExecFlags& flags, const CLI::App& app, const Environment& environment) {
  check_events(flags.events);
  ExecJob job;
  job.device = device_of(flags, app, environment);
  job.command = flags.program;
  if (job.device == DeviceKind::kVirtual) job.events = flags.events;
  job.gpu = gpu_named(flags.gpu);
  set_world(job, flags, app, environment);
  set_end(job, flags, app);
  set_memory(job, flags);
  job.accept_invented_counts = flags.accept_invented_counts;
  job.assumed = assumed_values(flags);
  job.record = !flags.no_recording;
  job.memory_files = flags.memory_files;
  job.output_to_error = flags.json;
  job.output_folder = flags.output;
  return job;
}

RanksToExec ranks_to_exec(const ExecFlags& flags,
                          const ExecJob& job,
                          const Environment& environment) {
  if (!flags.ranks.empty() && !flags.rank.empty()) {
    throw UserError({.what = "--rank and --ranks say the same thing twice",
                     .where = fmt::format("--rank {}", flags.rank),
                     .help = "give one of them"});
  }
  if (flags.ranks == "auto") return {.named = {}, .are_found = true};
  if (!flags.ranks.empty()) return {.named = ranks_in_list(flags.ranks, job)};
  const int64_t rank = flag_or_variable(flags.rank, "--rank", kRankVariable, environment, 0, 0);
  return {.named = {rank_in(std::to_string(rank), "--rank", job)}};
}

int64_t ranks_at_once(const ExecFlags& flags, DeviceKind device) {
  constexpr int64_t kMostAtOnce = 1024;
  if (flags.jobs.empty()) return device == DeviceKind::kVirtual ? 0 : 1;
  const int64_t jobs = number_in(flags.jobs, "--jobs", 1, kMostAtOnce);
  if (jobs == 1 || device == DeviceKind::kVirtual) return jobs;
  throw UserError({.what = "a real GPU runs one rank at a time",
                   .where = fmt::format("--jobs {} with --device cuda", jobs),
                   .help = "leave out --jobs"});
}

}  // namespace sim
