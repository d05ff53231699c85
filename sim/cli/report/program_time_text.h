// The step time of a program as text.
#pragma once

#include <string>

#include "estimator/cluster/program_estimate.h"

namespace sim {

/// The iteration, its parts on each rank that was run, the work of the rank that computes most,
/// what is priced less well, and the whole training. The estimate has a step time.
std::string program_time_text(const estimator::ProgramEstimate& estimate);

}  // namespace sim
