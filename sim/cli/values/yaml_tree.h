// Reads YAML into the same tree as JSON.
#pragma once

#include <string>

#include "estimator/base/json.h"

namespace sim {

/// Reads one YAML document. Unquoted scalars are typed as in YAML 1.2's core schema: null, true,
/// false, decimal numbers; the rest (also `yes`, `.nan`, 0x10) is text.
/// Throws UserError with line and column; several documents are errors, and so are duplicate keys
/// unless the last one counts.
enum class DuplicateKeys { kRefused, kLastCounts };
estimator::Json parse_yaml(const std::string& text,
                           const std::string& origin,
                           DuplicateKeys duplicates = DuplicateKeys::kRefused);

}  // namespace sim
