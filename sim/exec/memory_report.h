// What filled a program's memory: for its profile, and as the files that were asked for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "estimator/profile/peak_snapshot.h"
#include "estimator/profile/rank_profile.h"
#include "sim/exec/settings.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

std::vector<std::string> phase_names(const std::vector<estimator::PhaseRecord>& phases);

/// Whether one of the files that are made of the memory's history is wanted.
bool wants_history(const ExecSettings& settings);

/// Writes the wanted files to `folder`, each by its suffix. `phases` are the names of all that the
/// tracker knows, `allocations` made the profile's peak.
void write_memory_files(const ExecSettings& settings,
                        const std::filesystem::path& folder,
                        const estimator::RankProfile& profile,
                        const RunTracker& tracker,
                        const std::vector<std::string>& phases,
                        const std::vector<estimator::PeakAllocation>& allocations);

}  // namespace sim
