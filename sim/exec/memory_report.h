// Writes what filled a program's memory: into its profile, and into the files that were asked for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "estimator/profile/peak_snapshot.h"
#include "estimator/profile/rank_profile.h"
#include "sim/exec/program/settings.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

std::vector<std::string> phase_names(const std::vector<estimator::PhaseRecord>& phases);

/// Whether a file is wanted that needs the history of the memory.
bool wants_history(const ExecSettings& settings);

/// Writes the wanted files to `folder`; each file is named by its suffix. `phases` are the names of
/// all phases that the tracker knows; `allocations` are those at the profile's peak.
void write_memory_files(const ExecSettings& settings,
                        const std::filesystem::path& folder,
                        const estimator::RankProfile& profile,
                        const TrackedRun& tracker,
                        const std::vector<std::string>& phases,
                        const std::vector<estimator::PeakAllocation>& allocations);

}  // namespace sim
