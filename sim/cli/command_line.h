// The command line as a whole: subcommands, help, and errors in the designed form.
#pragma once

#include "estimator/base/errors.h"
#include "sim/cli/process/environment.h"

namespace sim {

/// Runs the subcommand that the arguments name; `--help` and `--version` go to standard output.
/// Throws UserError for a command line that does not parse, with the nearest known name for what is
/// not known, and what the subcommand throws.
estimator::ExitCode run_command_line(int argc,
                                     const char* const* argv,
                                     const Environment& environment);

}  // namespace sim
