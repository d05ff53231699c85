// The step time of a program as text.
#pragma once

#include <string>

#include "estimator/cluster/program_time.h"

namespace sim {

/// The iteration, its parts on each rank that was run, the work of the rank that computes most, and
/// what is priced less well.
std::string program_time_text(const estimator::ProgramTime& time);

}  // namespace sim
