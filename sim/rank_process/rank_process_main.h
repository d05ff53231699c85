// The program `onerank-rank` without its main(), because tests have their own main().
#pragma once

#include "sim/verify/ranks/real_rank.h"

namespace sim {

/// Runs the program and returns its exit code.
int rank_process_main(int argc, char** argv, const WorldHooks& hooks = {});

}  // namespace sim
