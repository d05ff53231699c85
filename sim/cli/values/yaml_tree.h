// Reads YAML into the same tree as JSON.
#pragma once

#include <string>

#include "estimator/base/json.h"

namespace sim {

/// Reads one YAML document. Unquoted scalars are typed as in YAML 1.2's core schema: null, true,
/// false, decimal numbers; the rest (also `yes`, `.nan`, 0x10) is text.
/// Throws UserError with line and column; several documents are errors, and so are duplicate keys.
/// kAsPython: as PyYAML reads the files of other programs, where the last duplicate counts, and
/// unquoted yes, no, on and off are true and false as well.
enum class YamlReading { kStrict, kAsPython };
estimator::Json parse_yaml(const std::string& text,
                           const std::string& origin,
                           YamlReading reading = YamlReading::kStrict);

}  // namespace sim
