// Converts an operator call to the form of a profile.
#pragma once

#include <string>

#include "estimator/profile/rank_profile.h"
#include "sim/tracking/operator_call.h"

namespace sim {

/// `count` is used for both the planned and the executed count.
estimator::OperatorRecord operator_record(const OperatorCall& call,
                                          std::string phase,
                                          int64_t count);

}  // namespace sim
