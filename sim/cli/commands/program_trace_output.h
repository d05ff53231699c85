// The step of a program as a file for Perfetto.
#pragma once

#include <string>

#include "estimator/program/program_replay.h"

namespace sim {

/// Writes the step to `path`, and says on standard error which ranks are left out because the file
/// would be too large.
void write_program_trace(const std::string& path, const estimator::ProgramReplay& replayed);

}  // namespace sim
