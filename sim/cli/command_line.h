// The command line as a whole: subcommands, help, and errors in the designed form.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

#include "estimator/base/errors.h"
#include "sim/cli/process/environment.h"

namespace sim {

/// A subcommand: its part of the command line, and what it does.
struct Command {
  CLI::App* app;
  std::function<estimator::ExitCode(const Environment&)> run;
};

/// Runs the subcommand that the arguments name; `--help` and `--version` go to standard output.
/// Throws UserError for a command line that does not parse, with the nearest known name for what is
/// not known, and what the subcommand throws.
estimator::ExitCode run_command_line(int argc,
                                     const char* const* argv,
                                     const Environment& environment);

}  // namespace sim
