// Reads the recipes of Megatron-Bridge: Python functions that make a ConfigContainer. Functions of
// recipes are named after their GPUs (recipe_function_name() in its recipes/utils/naming.py):
// llama3_70b_pretrain_64gpu_h100_bf16_config.
#pragma once

#include <string>

#include "sim/cli/import/imported_plan.h"
#include "sim/cli/import/python/python_program.h"

namespace sim {

/// Whether a text of Python is of Megatron-Bridge.
bool is_megatron_recipe(const std::string& text);

/// The plan of one of its functions, whose name may be "" where the file has one alone. Throws
/// UserError that names all for a file with several, or without the function.
ImportedPlan import_megatron_recipe(PythonFile file,
                                    const std::string& function,
                                    const std::string& origin);

}  // namespace sim
