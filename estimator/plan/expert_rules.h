#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

/// What mixtures of experts ask of a plan; a dense model must not have their keys.
void check_experts(Rules& rules);

}  // namespace estimator
