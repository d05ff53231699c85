// The rules of context parallelism: what TransformerEngine's attention asks for where ranks split
// the sequence.
#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

/// Ranges have been checked, defaults are filled in.
void check_context(Rules& rules);

}  // namespace estimator
