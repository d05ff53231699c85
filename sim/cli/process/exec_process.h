// A program of the user's, run as one rank: its environment, its end, its profile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "estimator/hardware/hardware.h"
#include "estimator/profile/rank_profile.h"
#include "sim/cli/process/environment.h"
#include "sim/cli/process/interrupts.h"
#include "sim/exec/assumed_values.h"
#include "sim/tracking/memory_file_kinds.h"

namespace sim {

/// When an event of the virtual GPU has happened: once it is recorded, or when the host has waited
/// for it.
inline constexpr const char* kOrderedEvents = "ordered";
inline constexpr const char* kEventModes[] = {"immediate", kOrderedEvents};

/// In a folder of profiles, in the place of "rank-00000.json": why that rank has none.
inline constexpr const char* kErrorExtension = ".error";

struct ExecJob {
  std::vector<std::string> command;
  estimator::DeviceKind device = estimator::DeviceKind::kVirtual;  ///< or kCuda
  const estimator::Gpu* gpu = nullptr;                             ///< that the virtual GPU plays
  int64_t world_size = 1;
  bool world_is_given = false;  ///< else the world is what the program's own launcher makes of it
  int64_t gpus_per_node = 8;
  int64_t steps = 0;            ///< 0: until the program ends
  int64_t timeout_seconds = 0;  ///< 0: none
  bool lift_memory_limit = false;
  std::string events;  ///< one of kEventModes
  bool accept_invented_counts = false;
  AssumedValues assumed;
  ForEachMemoryFile<std::string> memory_files;  ///< paths; empty: not wanted
  bool record = true;                           ///< else the stubs alone are there
  bool output_to_error = false;
  std::filesystem::path stubs;          ///< holds virtual_gpu/ and exec/ for the program's torch
  std::filesystem::path output_folder;  ///< of the profile; exists
  std::filesystem::path memory_folder;  ///< of the memory files; exists
};

/// Throws UserError when there is no such program to start.
void check_command(const std::vector<std::string>& command, const Environment& environment);

/// The device of a rank: a real machine has one, device 0, whichever rank it is.
int64_t local_rank(const ExecJob& job, int64_t rank);

/// What a launcher such as torchrun sets for `rank`, on nodes of `job.gpus_per_node` processes,
/// over `environment`.
Environment launcher_environment(const ExecJob& job, int64_t rank, Environment environment);

/// Runs the program as `rank` and returns the profile of the process that was it, which is also in
/// the output folder, or else the error. No process of the program is left. Throws UserError when
/// it cannot be started or fails, or when none or several of its processes trained as that rank
/// (2), when it is killed, takes too long, asks absent ranks for what cannot be invented, or does
/// not use the GPU (3). A program that failed because it ran out of device memory has a profile
/// with `out_of_memory`, which is returned; so has one that did not train, whose profile is no
/// verdict (estimator::lacks_verdict).
estimator::RankProfile exec_rank(const ExecJob& job,
                                 int64_t rank,
                                 const Environment& environment,
                                 const Interrupts& interrupts);

}  // namespace sim
