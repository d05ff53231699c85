// The files that a command line names.
#pragma once

#include "sim/cli/input/cli_fwd.h"

namespace sim {

/// Throws UserError when a file that the command would write is also one that it reads, or one that
/// it writes for another flag: either would be lost. `app` has parsed its part of the command line.
void refuse_files_named_twice(const CLI::App& app);

}  // namespace sim
