// The settings that `onerank exec` gives to the recorder inside the program, as JSON in one
// environment variable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "sim/exec/assumed_values.h"
#include "sim/tracking/memory_file_kinds.h"

namespace sim {

/// Path of the recorder's library. Without it the preloaded hooks do nothing.
inline constexpr const char* kExecRecorderVariable = "ONERANK_EXEC_RECORDER";
inline constexpr const char* kExecSettingsVariable = "ONERANK_EXEC_SETTINGS";
/// The path of a folder in which every process that uses the GPU makes a folder of its own, named
/// by its process id. It is not part of the settings, because a path need not be UTF-8.
inline constexpr const char* kExecFolderVariable = "ONERANK_EXEC_FOLDER";
/// The rank that is wanted. The processes that a launcher of the program starts for other ranks end
/// at once, and leave an empty file with this prefix and their rank in that folder.
inline constexpr const char* kExecWantedRankVariable = "ONERANK_EXEC_WANTED_RANK";
inline constexpr const char* kSkippedPrefix = "skipped-";
/// In that folder: what the program asked absent ranks for in vain, a line each.
inline constexpr const char* kRefusals = "refusals";
/// The same of messages of absent ranks in whose place it was given what it held itself.
inline constexpr const char* kTakenForOwn = "taken-for-own";
/// The same of barriers behind which nobody waited for absent ranks.
inline constexpr const char* kPassedBarriers = "passed-barriers";
/// A variable: the time at which the program will be ended, in seconds since 1970. Shortly before,
/// its processes write to files with this prefix, and their id, what they are doing.
inline constexpr const char* kExecDeadlineVariable = "ONERANK_EXEC_DEADLINE";
inline constexpr const char* kDoingPrefix = "doing-";
/// What a process writes there: how many optimizer steps it has taken, after the first.
inline constexpr const char* kStepsTaken = "steps";
/// What it writes in place of its profile if Onerank itself failed: the error.
inline constexpr const char* kInternalError = "internal-error";
/// The last file that a process writes there.
inline constexpr const char* kProcessProfile = "profile.json";

struct ExecSettings {
  std::vector<std::string> command;
  int64_t rank = 0;        ///< of a process to which no launcher of the program gave another
  int64_t world_size = 1;  ///< the same
  int64_t gpus_per_node = 8;
  int64_t steps = 0;  ///< 0: until the program ends by itself
  estimator::DeviceRecord device;
  std::string events;                   ///< immediate or ordered
  bool limit_lifted = false;            ///< the virtual GPU has more memory than the device
  bool accept_invented_counts = false;  ///< false: such a program's profile is refused
  AssumedValues assumed;
  ForEachMemoryFile<bool> memory_files{};  ///< files that are wanted
  bool record = true;                      ///< false: only the stubs are loaded
  std::string version;                     ///< of Onerank
};
template <class Visitor>
void visit_fields(Visitor& visit, ExecSettings& settings) {
  visit("command", settings.command, "the program and its arguments");
  visit("rank", settings.rank, "the rank that it is");
  visit("world_size", settings.world_size, "of the world that it sees");
  visit("gpus_per_node", settings.gpus_per_node, "devices of its machine");
  visit("steps", settings.steps, "optimizer steps after which it is ended, 0: never");
  visit("device", settings.device, "what it runs on");
  visit("events", settings.events, "when an event of the virtual GPU has happened");
  visit("limit_lifted", settings.limit_lifted, "more memory is played than the device has");
  visit("accept_invented_counts", settings.accept_invented_counts, "zeros pass for counts");
  for (std::size_t file = 0; file < kMemoryFiles.size(); ++file) {
    visit(kMemoryFiles[file].flag, settings.memory_files[file], kMemoryFiles[file].help);
  }
  visit("assumed", settings.assumed, "given for values that no kernel computes");
  visit("record", settings.record, "else the stubs alone are there");
  visit("version", settings.version, "of Onerank");
}

}  // namespace sim
