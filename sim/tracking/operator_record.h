// An operator call as a profile writes it.
#pragma once

#include <string>

#include "estimator/profile/rank_profile.h"
#include "sim/tracking/operator_call.h"

namespace sim {

/// `count` is both as planned and as executed.
estimator::OperatorRecord operator_record(const OperatorCall& call,
                                          std::string phase,
                                          int64_t count);

}  // namespace sim
