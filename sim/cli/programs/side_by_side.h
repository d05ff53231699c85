// Runs a user's program as several ranks at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/cli/process/progress.h"
#include "sim/cli/programs/exec_process.h"

namespace sim {

struct SideBySide {
  int64_t at_once = 0;  ///< 0: as many as processors and memory allow
  Progress::Display display;
  /// Gets each rank's profile and what its program wrote, in the order of the ranks, those that
  /// were waited for last.
  std::function<void(const estimator::RankProfile&, const std::string&)> on_rank;
};

/// Runs exec_rank() for each of the ranks in a process of its own, and for the ranks whose messages
/// they wait for (PeerRanks), if the job has a folder for messages. The first of `ranks` shows its
/// output while it runs; what is handed to `on_rank` of it is empty. Each has to return its
/// profile: when one throws a UserError, the ranks after it are ended, and the error is thrown here
/// after what the program wrote has been printed to standard error. Throws UserError (interrupted)
/// after a request to end. In every case no process is left.
std::vector<estimator::RankProfile> exec_side_by_side(const ExecJob& job,
                                                      const std::vector<int64_t>& ranks,
                                                      const SideBySide& how,
                                                      const Environment& environment,
                                                      const Interrupts& interrupts);

/// How many ranks fit at the same time, at least 1, if each needs `rank_bytes`.
int64_t ranks_that_fit(int64_t processors, int64_t available_bytes, int64_t rank_bytes);

}  // namespace sim
