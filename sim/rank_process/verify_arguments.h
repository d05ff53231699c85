// The arguments of `onerank-rank verify`.
#pragma once

#include <string>

#include "sim/verify/ranks/verify_ranks.h"

namespace sim {

struct VerifyArguments {
  std::string plan_file;
  VerifyJob job;
};

/// Throws UserError. Ends the process for --help.
VerifyArguments parse_verify_arguments(int argc, char** argv);

}  // namespace sim
