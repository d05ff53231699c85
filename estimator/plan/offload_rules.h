// The rules of optimizer offload: what Megatron-LM's hybrid optimizer requires.
#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

/// Needs a plan whose defaults are filled in.
void check_optimizer_offload(Rules& rules);

}  // namespace estimator
