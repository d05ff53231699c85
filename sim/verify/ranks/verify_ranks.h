// Runs the real ranks of a verification on this machine, each in a child process.
#pragma once

#include <optional>
#include <string>

#include "estimator/plan/plan.h"
#include "sim/verify/ranks/real_rank.h"

namespace sim {

struct VerifyJob {
  /// The rank of this process in a world that a launcher started. If empty, all ranks of a new
  /// world run here and meet on the loopback interface.
  std::optional<WorldSeat> seat;
  WorldTimeouts timeouts;
  std::string output_folder;
  std::string errors_file = {};  ///< see ChildProcesses
  WorldHooks hooks = {};
};

/// Runs the ranks to their end and returns their common exit code, kDone or kDifference; rank 0 has
/// then written output_folder/verification.json. Throws UserError (this machine lacks something),
/// which names the rank that failed. No process is left running.
estimator::ExitCode verify_ranks(const estimator::Plan& plan, const VerifyJob& job);

}  // namespace sim
