#pragma once

#include "estimator/profile/rank_profile.h"

namespace estimator {

/// Of a profile whose order was not recorded: its records one after the other, last what happens
/// once.
StepOrder in_sequence(const RankProfile& profile);

}  // namespace estimator
