// Runs a user's program as one rank: sets up its environment, waits for its end and reads its
// profile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "estimator/hardware/hardware.h"
#include "estimator/profile/rank_profile.h"
#include "sim/cli/process/environment.h"
#include "sim/cli/process/interrupts.h"
#include "sim/exec/program/assumed_values.h"
#include "sim/tracking/memory_file_kinds.h"

namespace sim {

/// When an event of the virtual GPU counts as happened: as soon as it is recorded (immediate), or
/// when the host has waited for it (ordered).
inline constexpr const char* kOrderedEvents = "ordered";
inline constexpr const char* kEventModes[] = {"immediate", kOrderedEvents};

/// A folder of profiles has a file with this extension in place of "rank-00000.json" if that rank
/// has no profile. It says why.
inline constexpr const char* kErrorExtension = ".error";

struct ExecJob {
  std::vector<std::string> command;
  std::optional<std::string> run;  ///< of several ranks: it tells this run from others
  estimator::DeviceKind device = estimator::DeviceKind::kVirtual;  ///< or kCuda
  const estimator::Gpu* gpu = nullptr;  ///< the GPU that the virtual GPU simulates
  int64_t world_size = 1;
  bool world_is_given = false;  ///< false: the program's own launcher decides the world
  int64_t gpus_per_node = 8;
  bool node_is_given = false;   ///< false: a node has no more GPUs than a world of several ranks
  int64_t slurm_tasks = 0;      ///< of srun, which would start the program; 0: nothing of Slurm
  int64_t slurm_nodes = 0;      ///< of srun; 0: as many as the world needs
  int64_t steps = 0;            ///< 0: until the program ends
  int64_t timeout_seconds = 0;  ///< 0: none
  int64_t memory_bytes = 0;     ///< of each GPU; 0: as the GPU has
  bool lift_memory_limit = false;
  std::string events;  ///< one of kEventModes
  bool accept_invented_counts = false;
  AssumedValues assumed;
  ForEachMemoryFile<std::string> memory_files;  ///< paths; empty: not wanted
  bool record = true;                           ///< false: only the stubs are loaded
  bool output_to_error = false;
  std::filesystem::path stubs;          ///< holds virtual_gpu/ and exec/ for the program's torch
  std::filesystem::path output_folder;  ///< for the profile; must exist
  std::filesystem::path peers_folder;   ///< empty: no other rank is run; see PeerRanks
  std::filesystem::path memory_folder;  ///< for the memory files; must exist
};

/// Throws UserError when the program of the command does not exist.
void check_command(const std::vector<std::string>& command, const Environment& environment);

/// The device number of a rank. On a real GPU it is 0 for every rank.
int64_t local_rank(const ExecJob& job, int64_t rank);

/// `environment` with the variables that a launcher such as torchrun sets for `rank`, on nodes with
/// `job.gpus_per_node` processes, and those of Slurm if the job is srun's or the environment a
/// task's. Without WORLD_SIZE where only the program's own launcher can know it.
Environment launcher_environment(const ExecJob& job, int64_t rank, Environment environment);

/// Runs the program as `rank` and returns the profile of the process that was this rank. The
/// profile, or else the error, is also written to the output folder. No process of the program is
/// left running. Throws UserError with exit code 2 when the program cannot be started or fails, or
/// when none or several of its processes trained as that rank. Throws it with exit code 3 when the
/// program is killed, takes too long, asks absent ranks for what cannot be invented, or does not
/// use the GPU. If the program failed because device memory ran out, its profile is returned, with
/// `out_of_memory`. If it did not train, its profile is returned too, but gives no verdict
/// (estimator::lacks_verdict).
estimator::RankProfile exec_rank(const ExecJob& job,
                                 int64_t rank,
                                 const Environment& environment,
                                 const Interrupts& interrupts);

}  // namespace sim
