// A plan file: JSON, or YAML when its name ends in .yaml or .yml, or what another program reads
// (sim/cli/import). Standard input is JSON when it begins with a bracket, and else YAML.
#pragma once

#include <optional>
#include <string>

#include "estimator/base/json_value.h"
#include "sim/cli/import/imported_plan.h"

namespace sim {

struct PlanFile {
  estimator::JsonValue tree;
  std::optional<ImportedPlan> imported;  ///< if it is another program's file
};

/// The path of the file that is meant where a plan is named: `named` itself; kStandardInput for
/// "-"; the config.json in a model's folder; the file of an example of ours, where no file has its
/// name.
std::string file_meant_by(const std::string& named);

struct FileAndFunction {
  std::string path;
  std::string function;  ///< "" where none is named
};

/// "recipes.py" and "llama3_8b" of "recipes.py:llama3_8b", where there is such a file.
FileAndFunction file_and_function(const std::string& named);

/// Reads the file, told by its content. `named` is its path, that of a Python file with one of its
/// functions behind a colon, "-" for standard input, the folder of a model's config.json, or the
/// name of an example of ours. Throws UserError for a file that
/// cannot be read, is empty, is too large to be a plan or is not text, and (with line and column)
/// for text that does not parse. `script_arguments` are those of a script, if they are known.
PlanFile read_plan_or_other_file(const std::string& named,
                                 const std::optional<std::string>& script_arguments = std::nullopt);

}  // namespace sim
