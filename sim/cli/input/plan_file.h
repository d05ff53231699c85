// A plan file: JSON, or YAML when its name ends in .yaml or .yml.
#pragma once

#include <string>

#include "estimator/base/json.h"

namespace sim {

/// Reads the tree in the file. Throws UserError for a file that cannot be read, is empty, is too
/// large to be a plan or is not text, and (with line and column) for text that does not parse.
estimator::Json read_plan_file(const std::string& path);

}  // namespace sim
