// The rules of a plan's pipeline: how stages and virtual stages split layers and micro-batches.
#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

/// Needs a plan whose ranges are checked and whose defaults are filled in.
void check_pipeline(Rules& rules);

}  // namespace estimator
