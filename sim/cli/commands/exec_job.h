// What `onerank exec` is to run, from its flags, the variables of the environment, and srun where
// the program is started by it.
#pragma once

#include <cstdint>

#include "sim/cli/commands/exec_flags.h"
#include "sim/cli/input/cli_fwd.h"
#include "sim/cli/process/environment.h"
#include "sim/cli/programs/exec_process.h"
#include "sim/cli/programs/exec_ranks.h"

namespace sim {

/// The job, as far as it is told: its output folder is empty unless --output names it, and it has
/// no other folders and no stubs yet. `app` tells which of the flags were given. Throws UserError
/// for values that the flags do not have, and for flags that contradict each other.
ExecJob exec_job(const ExecFlags& flags, const CLI::App& app, const Environment& environment);

/// The ranks of --rank or --ranks, or of the variable RANK. Throws UserError for one that is not in
/// the world of `job`; where that is not given, it shows when the program has run.
RanksToExec ranks_to_exec(const ExecFlags& flags,
                          const ExecJob& job,
                          const Environment& environment);

/// How many ranks run at the same time; 0: as many as processors and memory allow. Throws UserError
/// for several on a real GPU.
int64_t ranks_at_once(const ExecFlags& flags, estimator::DeviceKind device);

}  // namespace sim
