// Which profile stands for which class of ranks.
#pragma once

#include <string>
#include <vector>

#include "estimator/cluster/rank_classes.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// A profile for each class, in the order of `classes`; of several for one class, the one with the
/// largest reserved peak. The pointers are into `profiles`.
///
/// Throws UserError when a profile is of another plan or places its rank elsewhere, and when
/// classes have none.
std::vector<const RankProfile*> match_profiles(const Plan& plan,
                                               const std::vector<RankClass>& classes,
                                               const std::vector<RankProfile>& profiles);
std::vector<const RankProfile*> match_profiles(const Plan&,
                                               const std::vector<RankClass>&,
                                               std::vector<RankProfile>&&) = delete;

/// The first key in which two plans differ so that their ranks would run differently, as "key: this
/// value in the one, that in the other"; "" when there is none. Names, prices, links and the length
/// of the training change no rank.
std::string first_difference(const Json& plan, const Json& profile_plan);

}  // namespace estimator
