// The profile of a program that `onerank exec` ran, as text.
#pragma once

#include <string>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/profile/rank_profile.h"

namespace sim {

/// Memory by phase and the peak, what it asked of NCCL, which attention it took, and the values
/// that it read although nobody had computed them.
std::string program_text(const estimator::RankProfile& profile);

/// "fits: ...", "does not fit: ..." or "no verdict ...", in estimate_program()'s words, and what
/// the rank's total is made of.
std::string program_verdict(const estimator::RankProfile& profile);
/// Of a profile that has a verdict.
estimator::Fit program_outcome(const estimator::RankProfile& profile);

}  // namespace sim
