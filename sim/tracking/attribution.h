// From what a tracker saw to what fills the peak: by allocation, by category, by module.
#pragma once

#include <string>
#include <vector>

#include "estimator/profile/peak_snapshot.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

/// Every allocation that was alive at the peak, in the order that they were made in; `phases` are
/// the names of the run's phases. The last one made the peak.
std::vector<estimator::PeakAllocation> peak_allocations(const RunTracker& tracker,
                                                        const std::vector<std::string>& phases);

/// The name of a phase, "" before the first one.
std::string phase_name(const std::vector<std::string>& phases, int32_t phase);

/// Where in the iteration; empty where none runs, as while the model is built.
std::optional<estimator::Direction> direction_in(const std::string& phase, const Place& place);

/// The largest peaks of the phases; of equal allocated ones the last phase's.
estimator::PeakRecord largest_peak(const std::vector<estimator::PhaseRecord>& phases);
/// Adds to `peak` where it was made and what fills it; nothing when no allocations were followed.
void describe_peak(const std::vector<estimator::PeakAllocation>& allocations,
                   estimator::PeakRecord& peak);
/// Throws std::logic_error when what fills the peak does not add up to it: the tracker has missed
/// some.
void check_attribution(const estimator::PeakRecord& peak);

estimator::CategoryBytes bytes_by_category(
    const std::vector<estimator::PeakAllocation>& allocations);

/// Every module with memory, each with what is inside it: parents before children, in the order of
/// the model.
std::vector<estimator::ModuleRecord> module_records(const RunTracker& tracker,
                                                    const estimator::ParametersRecord& parameters);

}  // namespace sim
