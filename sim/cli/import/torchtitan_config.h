// Reads a job configuration of TorchTitan (TOML, up to its version 0.2).
#pragma once

#include <string>
#include <vector>

#include "sim/cli/import/imported_plan.h"
#include "sim/cli/import/source_entry.h"

namespace sim {

/// Throws UserError with line and column for text that is no TOML.
ImportedPlan import_torchtitan_config(const std::string& text, const std::string& origin);

/// The plan of a job's keys, as version 0.2 names them: "training.local-batch-size".
ImportedPlan import_torchtitan_entries(const std::vector<SourceEntry>& entries,
                                       const std::string& origin);

}  // namespace sim
