// The rules of optimizer offload: what Megatron-LM's hybrid optimizer asks for.
#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

/// Defaults are filled in.
void check_optimizer_offload(Rules& rules);

}  // namespace estimator
