// Reads the arguments of transformers' Trainer and of the programs around it (trl, LLaMA-Factory,
// axolotl, FastChat) where people have them: a shell script, a batch script of Slurm, a YAML or
// JSON file. The files that they name are read, too: of DeepSpeed, accelerate and FSDP, and a
// model's config.json.
#pragma once

#include <optional>
#include <string>

#include "estimator/base/json.h"
#include "sim/cli/import/imported_plan.h"
#include "sim/cli/import/shell/shell_script.h"

namespace sim {

/// The plan of the script's training command; nothing if no command has arguments of the Trainer.
/// `find_file` gives the text of a file by its path. Throws UserError for values that cannot be
/// read.
std::optional<ImportedPlan> import_trainer_script(const std::string& text,
                                                  const std::string& origin,
                                                  const ScriptInput& input,
                                                  const ScriptFinder& find_file);

/// The plan of a file with arguments; nothing if the tree has none of such a program.
std::optional<ImportedPlan> import_trainer_config(const estimator::Json& tree,
                                                  const std::string& text,
                                                  const std::string& origin,
                                                  const ScriptFinder& find_file);

}  // namespace sim
