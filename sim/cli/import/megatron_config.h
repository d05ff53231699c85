// Reads configurations of Megatron's core: the tree that Megatron-Bridge writes beside a checkpoint
// (run_config.yaml, ConfigContainer.yaml), and Megatron-LM's --yaml-cfg. Their keys are the names
// of the core's fields, most of which are those of Megatron-LM's arguments
// (data/megatron_config.json has the others).
#pragma once

#include <string>
#include <vector>

#include "estimator/base/json.h"
#include "sim/cli/import/imported_plan.h"
#include "sim/cli/import/source_entry.h"

namespace sim {

/// Whether the tree is such a configuration.
bool is_megatron_config(const estimator::Json& tree);
ImportedPlan import_megatron_config(const estimator::Json& tree,
                                    const std::string& text,
                                    const std::string& origin);

struct MegatronFields {
  std::string program;
  std::string preset = {};  ///< of the model whose shape the fields do not say; "" without one
};

/// The plan of fields with their sections: "model.num-layers". Of two that are the same field of
/// the core, the last one that says something counts.
ImportedPlan import_megatron_fields(std::vector<SourceEntry> entries,
                                    const MegatronFields& fields,
                                    const std::string& origin);

}  // namespace sim
