// Compares the run of a rank with the stub and its run with real groups.
#pragma once

#include "estimator/profile/run_record.h"
#include "sim/verify/verification.h"

namespace sim {

/// Adds the differences between the two sequences of collectives: calls that only one of the runs
/// made, with their place. Two different calls at the same place are one difference.
void compare_calls(int64_t rank,
                   const estimator::RunRecord& stub,
                   const estimator::RunRecord& real,
                   DifferenceList& differences);

/// Adds the differences in the allocated bytes before each phase, after it and at its peak.
void compare_phases(int64_t rank,
                    const estimator::RunRecord& stub,
                    const estimator::RunRecord& real,
                    DifferenceList& differences);

}  // namespace sim
