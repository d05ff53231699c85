// Chooses the function of a Python file that makes the configuration that is meant.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/import/imported_plan.h"
#include "sim/cli/import/python/python_value.h"

namespace sim {

/// What divides the path of a file and the name of one of its functions: recipes.py:llama3_8b.
inline constexpr char kFunctionMark = ':';

/// The function of this name, or the only one whose name fits the pattern where `wanted` is "".
/// Those that begin with "_" are helpers. Throws UserError that names them all where there are
/// several, or not the one that is wanted.
std::string chosen_function(const std::vector<std::string>& functions,
                            const std::string& pattern,
                            const std::string& wanted,
                            const std::string& origin);

/// Throws UserError for a function that gives no object with fields.
void refuse_no_object(const PythonValue& value,
                      const std::string& function,
                      const std::string& origin);

/// Notes where the file calls what was left out (PythonProgram::undecided()).
void note_undecided(const std::vector<std::string>& places, ImportedPlan& plan);

}  // namespace sim
