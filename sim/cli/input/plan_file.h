// A plan file: JSON, or YAML when its name ends in .yaml or .yml.
#pragma once

#include <string>

#include "estimator/base/json.h"

namespace sim {

/// The tree in the file. Throws UserError for a file that cannot be read, is empty, too large to be
/// a plan or not text, and for text that does not parse (with line and column).
estimator::Json read_plan_file(const std::string& path);

}  // namespace sim
