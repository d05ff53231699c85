// The rules of deterministic training: what Megatron-LM refuses beside it.
#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

/// Defaults are filled in.
void check_determinism(Rules& rules);

}  // namespace estimator
