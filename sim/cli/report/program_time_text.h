// The step time of a program as text.
#pragma once

#include <string>
#include <vector>

#include "estimator/program/program_estimate.h"
#include "sim/cli/report/table.h"

namespace sim {

/// The parts of the iteration on each rank, and the work of the rank that computes most.
std::vector<TitledTable> program_time_tables(const estimator::ProgramTime& time);

/// The iteration, its parts on each rank that was run, the work of the rank that computes most,
/// what is priced less well, and the whole training. The estimate has a step time.
std::string program_time_text(const estimator::ProgramEstimate& estimate);

}  // namespace sim
