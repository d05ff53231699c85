// Reads a job configuration of TorchTitan (TOML, up to its version 0.2).
#pragma once

#include <string>
#include <vector>

#include "estimator/plan/plan.h"
#include "sim/cli/import/imported_plan.h"
#include "sim/cli/import/source_entry.h"

namespace sim {

/// Throws UserError with line and column for text that is no TOML.
ImportedPlan import_torchtitan_config(const std::string& text, const std::string& origin);

/// The plan of a job's keys, as version 0.2 names them: "training.local-batch-size".
ImportedPlan import_torchtitan_entries(const std::vector<SourceEntry>& entries,
                                       const std::string& origin);

/// Throws UserError if a job's shards are the ranks that its layout leaves over (degree -1), and
/// these are one: TorchTitan then shards nothing (fsdp_enabled in distributed/parallel_dims.py of
/// v0.2.2), and computes under autocast. `tree` has what the file and the flags say.
void refuse_one_shard(const estimator::Json& tree, const estimator::PlanContext& context);

}  // namespace sim
