#include "sim/cli/import/tree_entries.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/fields.h"
#include "sim/cli/import/key_table.h"

namespace sim {
namespace {

using estimator::Json;

void add_entries(const Json& object,
                 const std::string& prefix,
                 const std::string& text,
                 const std::string& origin,
                 std::vector<SourceEntry>& entries) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      add_entries(value, prefix + key + ".", text, origin, entries);
      continue;
    }
    SourceEntry entry = {.key = normal_key(prefix + key), .values = {}, .place = origin};
    entry.as_written = prefix + key;
    constexpr std::size_t kMostPlaces = 1000;  // each is a search in the whole text
    if (entries.size() < kMostPlaces) entry.place = place_of(key, text, origin);
    if (value.is_array()) {
      for (const Json& item : value) entry.values.push_back(scalar_text(item));
    } else if (!value.is_null()) {
      entry.values.push_back(scalar_text(value));
    }
    entry.is_null = entry.values.empty();
    entries.push_back(std::move(entry));
  }
}

}  // namespace

std::string scalar_text(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string place_of(const std::string& key, const std::string& text, const std::string& origin) {
  if (key.empty()) return origin;
  for (std::size_t at = 0; (at = text.find(key, at)) != text.npos; at += key.size()) {
    const std::size_t begin = text.find_last_of('\n', at) + 1;  // 0 without one
    const std::size_t after = text.find_first_not_of("\"' ", at + key.size());
    const bool ends = after != text.npos && text[after] == ':';
    if (!ends || text.find_first_not_of(" \t\"'{,", begin) < at) continue;
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(at);
    return fmt::format("{}:{}", origin, 1 + std::count(text.begin(), end, '\n'));
  }
  return origin;
}

std::vector<SourceEntry> entries_of_tree(const Json& tree,
                                         const std::string& text,
                                         const std::string& origin) {
  std::vector<SourceEntry> entries;
  add_entries(tree, "", text, origin, entries);
  return entries;
}

const SourceEntry* find_entry(const std::vector<SourceEntry>& entries, const std::string& key) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const SourceEntry& entry) {
    return entry.key == normal_key(key);
  });
  return found == entries.end() ? nullptr : &*found;
}

}  // namespace sim
