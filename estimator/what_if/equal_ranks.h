// Ranks of different plans that run in the same way. One run serves all of them.
#pragma once

#include <string>

#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// Equal for ranks that run in the same way: their plans differ only in what changes no rank
/// (prices, links, ...) and in the number of micro-batches, of which a rank runs only as many as
/// its peak needs.
std::string rank_run_key(const Plan& plan, int64_t rank);

/// The profile of a rank of `plan`, from the run of one that has the same rank_run_key(). Counts of
/// an iteration are those of the micro-batches of `plan`.
RankProfile as_rank_of(const Plan& plan, RankProfile profile);

}  // namespace estimator
