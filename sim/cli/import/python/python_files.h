// Finds the files that a Python file imports, as they lie in a checkout or an installed package.
#pragma once

#include <string>

#include "sim/cli/import/python/python_program.h"

namespace sim {

/// Looks for a relative module from the folder of the importing file on, and for another one in
/// the folders that this file is in, and in `src` within them.
PythonFinder python_files_around();

}  // namespace sim
