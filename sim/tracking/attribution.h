// Finds what fills the peak, by allocation, by category and by module, from what a tracker saw.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/profile/peak_snapshot.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

/// All allocations that were alive at the peak, in the order in which they were made; the last one
/// made the peak. `phases` are the names of the run's phases.
std::vector<estimator::PeakAllocation> peak_allocations(const TrackedRun& tracker,
                                                        const std::vector<std::string>& phases);

/// The name of a phase, "" before the first one.
std::string phase_name(const std::vector<std::string>& phases, int32_t phase);

/// The part of the iteration; empty outside iterations, such as while the model is built.
std::optional<estimator::Direction> direction_in(const std::string& phase, const Place& place);

/// The largest peaks of all phases. If allocated peaks are equal, the last phase's counts.
estimator::PeakRecord largest_peak(const std::vector<estimator::PhaseRecord>& phases);
/// Adds to `peak` where it was made and what fills it. Does nothing if allocations were not
/// followed.
void describe_peak(const std::vector<estimator::PeakAllocation>& allocations,
                   estimator::PeakRecord& peak);
/// Throws std::logic_error when the categories do not add up to the peak, because then the tracker
/// has missed allocations.
void check_attribution(const estimator::PeakRecord& peak);

estimator::CategoryBytes bytes_by_category(
    const std::vector<estimator::PeakAllocation>& allocations);

/// One record for every module that has memory, including that of the modules inside it. Parents
/// come before children, in the order of the model.
std::vector<estimator::ModuleRecord> module_records(const TrackedRun& tracker,
                                                    const estimator::ParametersRecord& parameters);

}  // namespace sim
