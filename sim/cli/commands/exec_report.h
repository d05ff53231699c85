// What `onerank exec` writes and prints of the profiles of its ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "estimator/program/program_run.h"
#include "sim/cli/commands/exec_flags.h"
#include "sim/cli/page/rank_detail.h"

namespace sim {

/// Throws UserError, before the program runs, for a file that could not be written after it.
void check_exec_outputs(const ExecFlags& flags, const std::vector<int64_t>& ranks);

/// Prints what the program of one rank wrote (`output`; "" if it was printed already), and then the
/// profile of the rank. With --json the output goes to standard error, and report_profiles() prints
/// the profile.
void show_rank(const ExecFlags& flags,
               const estimator::RankProfile& profile,
               const std::string& output);

/// Writes the files that the flags name, and prints the rest: the time of the step, and the
/// profiles as JSON with --json. `detail` is for the page of --html.
void report_profiles(const ExecFlags& flags,
                     const std::vector<estimator::RankProfile>& profiles,
                     const estimator::ProgramRun& run,
                     const std::optional<DetailFiles>& detail);

}  // namespace sim
