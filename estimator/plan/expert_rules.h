#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

/// Checks what mixtures of experts require of a plan. A dense model must not set their keys.
void check_experts(Rules& rules);

}  // namespace estimator
