// Finds the profile for each class of ranks.
#pragma once

#include <string>
#include <vector>

#include "estimator/cluster/rank_classes.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// One profile for each class, in the order of `classes`. If a class has several profiles, it is
/// the one with the largest reserved peak. The pointers point into `profiles`.
///
/// Throws UserError when a profile is of another plan or has its rank at another place, and when a
/// class has no profile.
std::vector<const RankProfile*> match_profiles(const Plan& plan,
                                               const std::vector<RankClass>& classes,
                                               const std::vector<RankProfile>& profiles);
std::vector<const RankProfile*> match_profiles(const Plan&,
                                               const std::vector<RankClass>&,
                                               std::vector<RankProfile>&&) = delete;

/// The first key whose difference makes the ranks of the two plans run differently, as text with
/// both values; "" when there is none. Names, prices, links and the length of the training do not
/// change how ranks run.
std::string first_difference(const Json& plan, const Json& profile_plan);

/// A resolved plan's JSON without the keys whose difference does not make ranks run differently.
Json without_what_changes_no_rank(const Json& plan);

}  // namespace estimator
