// Changes to a plan that save memory: a table with one row for each kind. What they save is for a
// run of the changed plan to say.
#pragma once

#include <string>
#include <vector>

#include "estimator/plan/plan.h"

namespace estimator {

struct PlanChange {
  std::string text;  ///< "full recompute"
  Plan plan;         ///< resolved; the world is the same
};

/// The changes that this plan lacks and the rules allow, those that cost least first.
std::vector<PlanChange> memory_saving_changes(const Plan& plan);

}  // namespace estimator
