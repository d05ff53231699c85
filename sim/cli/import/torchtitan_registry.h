// Reads the jobs of TorchTitan's versions after 0.2: functions of a config_registry.py that make a
// Trainer.Config, and commands that name one (--module llama3 --config llama3_70b).
#pragma once

#include <optional>
#include <string>

#include "sim/cli/import/imported_plan.h"
#include "sim/cli/import/python/python_program.h"
#include "sim/cli/import/shell/shell_script.h"

namespace sim {

/// Whether a text of Python is a registry of TorchTitan's jobs.
bool is_torchtitan_registry(const std::string& text);

/// The plan of one of its functions, whose name may be "" where the file has one alone. The model's
/// family is the name of the file's folder. Throws UserError that names all for a file with
/// several, or without the function.
ImportedPlan import_torchtitan_registry(PythonFile file,
                                        const std::string& function,
                                        const std::string& origin);

/// The plan of a script that starts `torchtitan.train`; nothing for another script. The registry is
/// looked for from the folder of the script at `path` on.
std::optional<ImportedPlan> import_torchtitan_script(const std::string& text,
                                                     const std::string& path,
                                                     const std::string& origin,
                                                     const ScriptInput& input);

}  // namespace sim
