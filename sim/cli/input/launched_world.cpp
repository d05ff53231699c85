#include "sim/cli/input/launched_world.h"

#include <fmt/format.h>

#include <array>

#include "estimator/base/errors.h"
#include "estimator/base/range.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

using estimator::UserError;

/// Which variables of a launcher tell the rank and the size of its world. It started this process
/// if `sign` is set.
struct Launcher {
  const char* name;
  const char* sign;
  const char* rank;
  const char* size;
};

// torchrun first: it may itself have been started by srun. Slurm sets SLURM_NTASKS in batch scripts
// too, but this one only for what srun starts.
constexpr std::array kLaunchers = {
    Launcher{"torchrun", "TORCHELASTIC_RUN_ID", kRankVariable, kWorldSizeVariable},
    Launcher{"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    Launcher{"RANK and WORLD_SIZE", kRankVariable, kRankVariable, kWorldSizeVariable},
};

std::string variable(const Environment& environment, const char* name, const Launcher& launcher) {
  if (const auto value = find_variable(environment, name)) return *value;
  throw UserError(
      {.what = fmt::format("{} is not set, so the world cannot be joined", name),
       .where =
           fmt::format("{} is set: this is a rank that {} started", launcher.sign, launcher.name),
       .help = fmt::format("set it too, or unset {} to start all ranks here", launcher.sign)});
}

std::string address(const Environment& environment, const Launcher& launcher) {
  if (const auto given = find_variable(environment, kMasterAddressVariable)) return *given;
  if (const auto nodes = find_variable(environment, kSlurmNodesVariable)) return first_host(*nodes);
  return variable(environment, kMasterAddressVariable, launcher);
}

/// Steps of a job may run at the same time, and jobs may share a machine.
int64_t slurm_port(const Environment& environment) {
  constexpr int64_t kFirst = 20'000, kPorts = 10'000;
  int64_t sum = 0;
  for (const char* name : {kSlurmJobVariable, kSlurmStepVariable}) {
    const auto value = find_variable(environment, name);
    const int64_t number = value ? parse_whole_number(*value, name) : 0;
    sum = (sum * 31 + number % kPorts) % kPorts;
  }
  return kFirst + sum;
}

int64_t port(const Environment& environment, const Launcher& launcher) {
  const bool is_slurm = find_variable(environment, kSlurmJobVariable).has_value();
  if (!find_variable(environment, kMasterPortVariable) && is_slurm) return slurm_port(environment);
  const int64_t port =
      parse_whole_number(variable(environment, kMasterPortVariable, launcher), kMasterPortVariable);
  estimator::require_in_range(port, {1, 65'535}, kMasterPortVariable);
  return port;
}

const Launcher* find_launcher(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (find_variable(environment, launcher.sign)) return &launcher;
  }
  return nullptr;
}

}  // namespace

std::optional<LaunchedWorld> find_launched_world(const Environment& environment) {
  const Launcher* launcher = find_launcher(environment);
  if (launcher == nullptr) return std::nullopt;
  const auto number = [&](const char* name) {
    return parse_whole_number(variable(environment, name, *launcher), name);
  };
  LaunchedWorld world{.launcher = launcher->name,
                      .rank = number(launcher->rank),
                      .size = number(launcher->size),
                      .host = address(environment, *launcher),
                      .port = port(environment, *launcher)};
  if (world.rank < 0 || world.rank >= world.size) {
    throw UserError(
        {.what = "the rank is not in the world",
         .where = fmt::format(
             "{} = {}, {} = {}", launcher->rank, world.rank, launcher->size, world.size),
         .help = fmt::format("use a rank from 0 to {}", world.size - 1)});
  }
  const auto restarts = find_variable(environment, kTorchrunRestartsVariable);
  world.store_prefix = "onerank/" + restarts.value_or("0");
  const bool agent_keeps = find_variable(environment, kTorchrunStoreVariable) == "True";
  world.keeps_store = world.rank == 0 && !agent_keeps;
  return world;
}

std::string to_text(const LaunchedWorld& world) {
  return fmt::format("rank {} of {} in the world that {} started; it meets at port {} on {}",
                     world.rank,
                     world.size,
                     world.launcher,
                     world.port,
                     world.host);
}

std::string first_host(const std::string& list) {
  const std::size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const std::size_t end = list.find_first_of(",-]", bracket);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

}  // namespace sim
