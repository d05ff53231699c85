// The command line as a whole: subcommands, help and errors.
#pragma once

#include "estimator/base/errors.h"
#include "sim/cli/process/environment.h"

namespace sim {

/// Runs the subcommand that the arguments name; `--help` and `--version` go to standard output.
/// Throws UserError for a command line that does not parse; for an unknown word its help has the
/// nearest known name. Also throws what the subcommand throws.
estimator::ExitCode run_command_line(int argc,
                                     const char* const* argv,
                                     const Environment& environment);

}  // namespace sim
