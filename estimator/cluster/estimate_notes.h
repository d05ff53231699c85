// What an estimate rests on, and what it leaves out, in words.
#pragma once

#include <string>
#include <vector>

#include "estimator/communication/fabric.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// Every assumed number that entered the estimate of `plan` from `profiles`.
std::vector<std::string> assumptions_of(const Plan& plan,
                                        const Gpu& gpu,
                                        const Fabric& fabric,
                                        const std::vector<const RankProfile*>& profiles);

/// Those of them that are of links and collectives.
std::vector<std::string> communication_assumptions(const ClusterConfig& cluster,
                                                   const Fabric& fabric);

/// What the time and memory models do not contain.
std::vector<std::string> gaps_of_the_model();

}  // namespace estimator
