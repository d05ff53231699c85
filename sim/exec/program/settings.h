// The settings that `onerank exec` gives to the recorder inside the program, as JSON in one
// environment variable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "sim/exec/program/assumed_values.h"
#include "sim/exec/program/variables.h"
#include "sim/tracking/memory_file_kinds.h"

namespace sim {

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
