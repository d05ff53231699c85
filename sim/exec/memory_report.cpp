#include "sim/exec/memory_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "sim/tracking/memory_file_kinds.h"
#include "sim/tracking/memory_files.h"

namespace sim {
namespace {

/// A program's layout is its own affair: nothing is said of its axes.
estimator::PeakSnapshotHeader snapshot_header(const estimator::RankProfile& profile,
                                              size_t allocations) {
  return {.tool = profile.tool,
          .plan = fmt::format("{}", fmt::join(profile.program->command, " ")),
          .rank = profile.rank,
          .world_size = profile.world_size,
          .device = profile.device,
          .peak = profile.peak,
          .allocations = static_cast<int64_t>(allocations)};
}

}  // namespace

std::vector<std::string> phase_names(const std::vector<estimator::PhaseRecord>& phases) {
  std::vector<std::string> names;
  names.reserve(phases.size());
  for (const estimator::PhaseRecord& phase : phases) names.push_back(phase.name);
  return names;
}

bool wants_history(const ExecSettings& settings) {
  return settings.memory_files[kMemoryHistory] || settings.memory_files[kTimeline];
}

void write_memory_files(const ExecSettings& settings,
                        const std::filesystem::path& folder,
                        const estimator::RankProfile& profile,
                        const TrackedRun& tracker,
                        const std::vector<std::string>& phases,
                        const std::vector<estimator::PeakAllocation>& allocations) {
  const auto write = [&](MemoryFile file, const std::string& text) {
    estimator::write_file_whole((folder / kMemoryFiles[file].suffix).string(), text);
  };
  const auto header = snapshot_header(profile, allocations.size());
  if (settings.memory_files[kPeakSnapshot] && !allocations.empty()) {
    write(kPeakSnapshot, estimator::to_json_lines({header, allocations}));
  }
  if (settings.memory_files[kMemoryHistory]) {
    write(kMemoryHistory, memory_history_pickle(tracker, phases, estimator::to_json(header)));
  }
  if (settings.memory_files[kTimeline]) write(kTimeline, timeline_csv(tracker, phases));
}

}  // namespace sim
