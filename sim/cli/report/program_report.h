// The profile of a program that `onerank exec` ran, as text.
#pragma once

#include <string>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/profile/rank_profile.h"

namespace sim {

/// The program's memory by phase, its peak, its calls to NCCL, the attention operators that it
/// used, and how many values were assumed: with `is_verbose` also which, by whom they were read.
std::string program_text(const estimator::RankProfile& profile, bool is_verbose);

/// "fits: ...", "does not fit: ..." or "no verdict ...", in the words of estimate_program(),
/// followed by the terms of the rank's total.
std::string program_verdict(const estimator::RankProfile& profile);
/// The verdict of a profile that has one.
estimator::Verdict verdict_of_program(const estimator::RankProfile& profile);

}  // namespace sim
