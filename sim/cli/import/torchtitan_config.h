// Reads a job configuration of TorchTitan (TOML, up to its version 0.2).
#pragma once

#include <string>

#include "sim/cli/import/imported_plan.h"

namespace sim {

/// Throws UserError with line and column for text that is no TOML.
ImportedPlan import_torchtitan_config(const std::string& text, const std::string& origin);

}  // namespace sim
