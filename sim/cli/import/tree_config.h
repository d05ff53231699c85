// Reads the YAML files of programs whose keys are a tree: nanotron's and GPT-NeoX's. What they are
// is told by keys that they must have (data/tree_programs.json).
#pragma once

#include <optional>
#include <string>

#include "estimator/base/json.h"
#include "sim/cli/import/imported_plan.h"

namespace sim {

/// Nothing if the tree is that of no such program.
std::optional<ImportedPlan> import_tree_config(const estimator::Json& tree,
                                               const std::string& text,
                                               const std::string& origin);

/// The plan of a configuration of accelerate.
ImportedPlan import_accelerate_entries(const std::vector<SourceEntry>& entries,
                                       const std::string& origin);

}  // namespace sim
