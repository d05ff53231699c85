// The rules of recompute: what TorchTitan's selective one, by operator or by layer, asks for.
#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

/// Defaults are filled in.
void check_recompute(Rules& rules);

}  // namespace estimator
