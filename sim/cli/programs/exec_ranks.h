// Runs a user's program as one rank after another, or as several at the same time, until no further
// rank is asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/cli/programs/side_by_side.h"

namespace sim {

struct RanksToExec {
  std::vector<int64_t> named;  ///< in ascending order
  bool are_found = false;      ///< none is named: they follow from what the ranks before did

  bool are_several() const { return are_found || named.size() > 1; }
};

/// The profiles of the ranks, and of those for which they waited, in ascending order. One rank
/// alone, in a job without a folder for messages, shows its output while it runs, and
/// `how.on_rank` gets none of it. Throws what exec_rank() and exec_side_by_side() throw.
std::vector<estimator::RankProfile> exec_ranks(const ExecJob& job,
                                               const RanksToExec& ranks,
                                               const SideBySide& how,
                                               const Environment& environment,
                                               const Interrupts& interrupts);

}  // namespace sim
