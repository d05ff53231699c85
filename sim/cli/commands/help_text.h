// The help of the command line and of a subcommand. It is made from the same description as the
// completions and the manual page.
#pragma once

#include <cstddef>
#include <string>

#include "sim/cli/input/cli_fwd.h"

namespace sim {

/// Of `onerank`: examples, subcommands and exit codes. No line has more than `columns` characters,
/// unless an example has.
std::string root_help(const CLI::App& root, std::size_t columns);

/// Of a subcommand: the options that people need first, and examples. Names one name of each
/// option.
std::string short_help(const CLI::App& app, std::size_t columns);

/// All options of a subcommand by heading, each with its other names.
std::string full_help(const CLI::App& app, std::size_t columns);

}  // namespace sim
