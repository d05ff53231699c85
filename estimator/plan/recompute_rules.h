// The rules of recompute: what TorchTitan's selective recompute, by operator or by layer, requires.
#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

/// Needs a plan whose defaults are filled in.
void check_recompute(Rules& rules);

}  // namespace estimator
