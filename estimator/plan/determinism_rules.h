// The rules of deterministic training: options that Megatron-LM refuses together with it.
#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

/// Needs a plan whose defaults are filled in.
void check_determinism(Rules& rules);

}  // namespace estimator
