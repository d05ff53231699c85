// Slurm's `srun` as the command of `onerank exec`: the program that it would start, and the
// variables that a task finds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/process/environment.h"

namespace sim {

/// Nothing here is Slurm's own: no Slurm is needed, and its controller is not asked.
struct SrunCommand {
  std::vector<std::string> program;
  std::optional<int64_t> tasks;  ///< --ntasks, or --nodes times --ntasks-per-node
  std::optional<int64_t> nodes;  ///< --nodes

  bool has_a_task_for_each_node() const { return tasks && *tasks == nodes.value_or(1); }
};

/// Empty if the command does not start srun. Throws UserError if its options lack a program.
std::optional<SrunCommand> parse_srun(const std::vector<std::string>& command);

/// A world whose ranks are divided among the tasks of one srun.
struct SlurmJob {
  int64_t world_size = 1;
  int64_t gpus_per_node = 8;
  int64_t tasks = 1;  ///< divides world_size; one for each node if a task is a launcher
  int64_t nodes = 0;  ///< 0: as many as the world needs
};

/// Throws UserError unless `tasks` divides the world.
void check_slurm_job(const SlurmJob& job);

/// Sets what the task of `rank` is told; of a rank behind the world, that of its node. Variables
/// that say nothing of the task stay as they are.
void set_slurm_variables(const SlurmJob& job, int64_t rank, Environment& environment);

}  // namespace sim
