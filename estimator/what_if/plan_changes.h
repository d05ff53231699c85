// Changes to a plan that save memory or time: a table with one row for each kind. What they save is
// for a run of the changed plan to say.
#pragma once

#include <string>
#include <vector>

#include "estimator/plan/plan_spec.h"

namespace estimator {

struct PlanChange {
  std::string text;  ///< "full recompute"
  PlanEdits edits;   ///< what is to be said for it, over what was said
  Plan plan;         ///< what that means; the world and the global batch are the same
};

/// Steps of one kind, such as the smaller micro-batches 8, 4, 2 and 1: each saves more memory than
/// the one before and costs more time. The first that fits is the one to take. Never empty.
using ChangeLadder = std::vector<PlanChange>;

/// The micro-batches that divide a data rank's share of the global batch, ascending.
std::vector<int64_t> micro_batch_sizes(const Plan& plan);

/// The changes that save memory, that the plan of `spec` lacks and that the rules allow; those that
/// cost least first. Throws UserError where resolve_plan() of `spec` does.
std::vector<ChangeLadder> memory_saving_changes(const PlanSpec& spec);

/// Those of them that cost no time as a rule and change nothing of what is trained, of each the
/// first step.
std::vector<PlanChange> free_changes(const PlanSpec& spec);

/// Smaller micro-batches alone; empty where there are none.
ChangeLadder smaller_micro_batches(const PlanSpec& spec);

/// The changes that save time where there is memory for them.
std::vector<ChangeLadder> time_saving_changes(const PlanSpec& spec);

}  // namespace estimator
