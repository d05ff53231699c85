// What a plan is good for before a rank runs.
#pragma once

#include "estimator/plan/plan.h"

namespace fuzz {

/// Resolves the tree of a plan and asks it what commands ask. Throws UserError for no plan; fails
/// where the plan does not read back as itself, or ranks are in no class.
void use_plan(const estimator::Json& tree);

/// The same of a plan that is resolved.
void use_resolved_plan(const estimator::Plan& plan);

}  // namespace fuzz
