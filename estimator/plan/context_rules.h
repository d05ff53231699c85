// The rules of context parallelism: what TransformerEngine's attention requires when ranks split
// the sequence.
#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

/// Needs a plan whose ranges are checked and whose defaults are filled in.
void check_context(Rules& rules);

}  // namespace estimator
