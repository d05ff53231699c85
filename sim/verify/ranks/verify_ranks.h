// The real ranks of a verification that run on this machine, one child process for each.
#pragma once

#include <optional>
#include <string>

#include "estimator/plan/plan.h"
#include "sim/verify/ranks/real_rank.h"

namespace sim {

struct VerifyJob {
  /// This machine's one rank in a world that a launcher started; without it, all ranks of a world
  /// of its own on the loopback.
  std::optional<WorldSeat> seat;
  WorldTimeouts timeouts;
  std::string output_folder;
  WorldHooks hooks = {};
};

/// Runs the ranks to their common end: kDone or kDifference, and rank 0 has written
/// output_folder/verification.json. Throws UserError (this machine lacks something) that names the
/// rank that failed, and leaves no process behind.
estimator::ExitCode verify_ranks(const estimator::Plan& plan, const VerifyJob& job);

}  // namespace sim
