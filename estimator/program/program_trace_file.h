// The replayed step of a program for Perfetto.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/program/program_replay.h"

namespace estimator {

struct ProgramTrace {
  std::string text;               ///< Chrome's format (base/trace_event_file.h)
  std::vector<int64_t> left_out;  ///< ranks for which there was no room
};

/// A process for each rank that was replayed, all on one clock, with these tracks:
///   modules        what the computing stream works for: direction, layer, and the modules in it
///   stream N       a slice for each work, with its operator, module and direction
///   NCCL, group    the calls of each communicator, on whatever stream they run
///   allocated      a counter: most bytes that were allocated while the module ran (ModuleRecord)
/// and an arrow from each send to its receive, if both ranks are in the file.
/// Ranks for which there is no room within `most_bytes` are left out; the first rank never is.
ProgramTrace program_trace(const ProgramReplay& replayed, std::size_t most_bytes = 50'000'000);

}  // namespace estimator
