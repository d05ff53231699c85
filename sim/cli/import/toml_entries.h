// The keys of a TOML document as entries.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/import/source_entry.h"

namespace sim {

/// One entry for each key, with that of a table as "training.seq-len". Throws UserError with line
/// and column.
std::vector<SourceEntry> toml_entries(const std::string& text, const std::string& origin);

}  // namespace sim
