// The plan that tests of composition begin with.
#pragma once

#include "estimator/plan/plan.h"

namespace estimator {

/// A plan with two data ranks that share the optimizer, unless `changes` says otherwise.
Plan piece_base(const Json& changes = Json::object());

}  // namespace estimator
