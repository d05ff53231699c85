// The assumptions of an estimate, and what it leaves out, in words.
#pragma once

#include <string>
#include <vector>

#include "estimator/communication/fabric.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// All assumed numbers that the estimate of `plan` from `profiles` uses.
std::vector<std::string> assumptions_of(const Plan& plan,
                                        const Gpu& gpu,
                                        const Fabric& fabric,
                                        const std::vector<const RankProfile*>& profiles);

/// Only the assumptions about links and collectives.
std::vector<std::string> communication_assumptions(const ClusterConfig& cluster,
                                                   const Fabric& fabric);

/// What the time and memory models do not contain, and what they lack of the plan's model.
std::vector<std::string> gaps_of(const Plan& plan);

}  // namespace estimator
