// TorchTitan's pipelines as a plan's.
#pragma once

#include <vector>

#include "sim/cli/import/imported_plan.h"
#include "sim/cli/import/source_entry.h"

namespace sim {

/// Adds the stages, the schedule and the micro-batches of a job with a pipeline to `plan`, which
/// has the rest. What no plan has is the technique torch-pipeline. Throws UserError for a model, of
/// this name, that TorchTitan does not divide.
void set_torchtitan_pipeline(const std::vector<SourceEntry>& entries,
                             const SourceEntry& model_name,
                             ImportedPlan& plan);

}  // namespace sim
