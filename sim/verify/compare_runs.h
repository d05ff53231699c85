// The stub's run of a rank beside the real one.
#pragma once

#include "estimator/profile/run_record.h"
#include "sim/verify/verification.h"

namespace sim {

/// Adds what differs in the sequence of collectives: calls that only one of the runs made, at their
/// place. Two that stand in each other's place are one difference.
void compare_calls(int64_t rank,
                   const estimator::RunRecord& stub,
                   const estimator::RunRecord& real,
                   DifferenceList& differences);

/// Adds what differs in the allocated bytes before, after and at the peak of each phase.
void compare_phases(int64_t rank,
                    const estimator::RunRecord& stub,
                    const estimator::RunRecord& real,
                    DifferenceList& differences);

}  // namespace sim
