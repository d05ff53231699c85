// Finds the flags that a user must type to change keys of a plan.
#pragma once

#include <string>

#include "estimator/plan/plan_spec.h"

namespace estimator {

/// The flags that write these keys, such as "--tp 4 --dp auto", or `--set KEY=VALUE` for a key
/// without a flag. Text that a shell would split is quoted.
std::string flags_to_type(const PlanEdits& edits);

}  // namespace estimator
