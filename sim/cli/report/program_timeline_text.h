// The replayed step of a program, drawn with characters.
#pragma once

#include <string>

#include "estimator/cluster/program_replay.h"

namespace sim {

/// A line for each stream of each rank that was replayed, `columns` wide as a whole, with a legend.
/// At the end of a line stands how much of the step the stream works.
std::string program_timeline_text(const estimator::ProgramReplay& replayed, int columns);

}  // namespace sim
