// The profile of a program that `onerank exec` ran, as text.
#pragma once

#include <string>

#include "estimator/profile/rank_profile.h"

namespace sim {

/// Memory by phase and the peak, what it asked of NCCL, which attention it took, and the values
/// that it read although nobody had computed them.
std::string program_text(const estimator::RankProfile& profile);

/// "fits: ...", "does not fit: ...": the allocator's reserved peak against the device's memory.
std::string program_verdict(const estimator::RankProfile& profile);
bool program_fits(const estimator::RankProfile& profile);

}  // namespace sim
