// The keys of a JSON or YAML document as entries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/base/json.h"
#include "sim/cli/import/source_entry.h"

namespace sim {

/// One entry for each key, with those of objects in objects as "zero-optimization.stage". `text` is
/// the document, for the lines of the places.
std::vector<SourceEntry> entries_of_tree(const estimator::Json& tree,
                                         const std::string& text,
                                         const std::string& origin);

/// The first entry of this key; null if there is none.
const SourceEntry* find_entry(const std::vector<SourceEntry>& entries, const std::string& key);
/// The whole number that it has; `otherwise` if it is not there, or is no number.
int64_t number_of_entry(const std::vector<SourceEntry>& entries,
                        const std::string& key,
                        int64_t otherwise);

/// "config.json:12", or "config.json" for a key that is not found in the text.
std::string place_of(const std::string& key, const std::string& text, const std::string& origin);

/// A number, a word or text as it is written; "" for null.
std::string scalar_text(const estimator::Json& value);

}  // namespace sim
