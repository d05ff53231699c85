// The program `onerank-rank` without its main(), because tests have their own main().
#pragma once

#include "sim/verify/ranks/real_rank.h"

namespace sim {

/// Runs the program and ends the process with its exit code, without destructors: torch's take a
/// quarter of the time of a short run to take its operators apart.
[[noreturn]] void rank_process_main(int argc, char** argv, const WorldHooks& hooks = {});

}  // namespace sim
