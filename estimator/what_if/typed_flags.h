// What a user types to say something of a plan: the flag table, read backwards.
#pragma once

#include <string>

#include "estimator/plan/plan_spec.h"

namespace estimator {

/// "--tp 4 --dp auto": the flags that write these keys; `--set KEY=VALUE` where there is none.
/// What a shell would take apart is in quotes.
std::string flags_to_type(const PlanEdits& edits);

}  // namespace estimator
