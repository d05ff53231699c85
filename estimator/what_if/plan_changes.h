// Changes to a plan that save memory or time, as a table with one row for each kind of change. How
// much a change saves is found by running the changed plan.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "estimator/resolve/plan_spec.h"

namespace estimator {

struct PlanChange {
  std::string text;  ///< "full recompute"
  PlanEdits edits;   ///< the keys that it changes in what the user gave
  Plan plan;  ///< the changed plan; of the same world, global batch and framework that was said
  std::size_t kind = 0;   ///< what is changed: the same for all steps of a ladder
  bool is_basic = false;  ///< to be made before all others: flash attention, 16 bits
};

/// Steps of one kind of change, such as the smaller micro-batches 8, 4, 2 and 1. Each step saves
/// more memory than the one before and costs more time, so the first step that fits is the best.
/// Never empty.
using ChangeLadder = std::vector<PlanChange>;

/// The micro-batches that divide a data rank's share of the global batch, ascending.
std::vector<int64_t> micro_batch_sizes(const Plan& plan);

/// The changes that save memory, that the plan of `spec` does not have yet and that the rules
/// allow. The changes that cost least come first. Throws UserError if resolve_plan() of `spec`
/// does.
std::vector<ChangeLadder> memory_saving_changes(const PlanSpec& spec);

/// The first step of each of these changes that usually costs no time and does not change what is
/// trained.
std::vector<PlanChange> free_changes(const PlanSpec& spec);

/// Only the smaller micro-batches; empty if there are none.
ChangeLadder smaller_micro_batches(const PlanSpec& spec);

/// Whether memory_saving_changes() has an optimizer that the hosts keep.
bool can_offload_optimizer(const PlanSpec& spec);

/// The changes that save time, if there is memory for them.
std::vector<ChangeLadder> time_saving_changes(const PlanSpec& spec);

}  // namespace estimator
