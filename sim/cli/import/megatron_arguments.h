// Reads the arguments of Megatron-LM's programs where people have them: a shell script, a batch
// script of Slurm, a line, a list, or a YAML file of its functional tests.
#pragma once

#include <optional>
#include <string>

#include "estimator/base/json.h"
#include "sim/cli/import/imported_plan.h"
#include "sim/cli/import/shell/shell_script.h"

namespace sim {

/// The plan that the script's training command means; nothing if it has no command or variable with
/// several of Megatron-LM's arguments. Throws UserError for values that cannot be read.
std::optional<ImportedPlan> import_megatron_script(const std::string& text,
                                                   const std::string& origin,
                                                   const ScriptInput& input);

/// What Megatron-LM's arguments mean.
const KeyTable& megatron_table();

/// Whether the tree is that of a functional test of Megatron-LM.
bool is_megatron_test(const estimator::Json& tree);
ImportedPlan import_megatron_test(const estimator::Json& tree,
                                  const std::string& text,
                                  const std::string& origin);

}  // namespace sim
