#include "sim/cli/import/tree_entries.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/fields.h"
#include "estimator/base/number_text.h"
#include "sim/cli/import/key_table.h"

namespace sim {
namespace {

using estimator::Json;

/// Where the key stands at the beginning of a line from `begin` on.
std::size_t find_key(const std::string& key, const std::string& text, std::size_t begin) {
  if (key.empty()) return text.npos;
  for (std::size_t at = begin; (at = text.find(key, at)) != text.npos; at += key.size()) {
    const std::size_t line = text.find_last_of('\n', at) + 1;  // 0 without one
    const std::size_t after = text.find_first_not_of("\"' ", at + key.size());
    const bool ends = after != text.npos && text[after] == ':';
    if (ends && text.find_first_not_of(" \t\"'{,", line) >= at) return at;
  }
  return text.npos;
}

/// The line of `at`, or of the first such key.
std::string place_at(std::size_t at,
                     const std::string& key,
                     const std::string& text,
                     const std::string& origin) {
  if (at == text.npos) at = find_key(key, text, 0);
  if (at == text.npos) return origin;
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(at);
  return fmt::format("{}:{}", origin, 1 + std::count(text.begin(), end, '\n'));
}

void add_entries(const Json& object,
                 const std::string& prefix,
                 const std::string& text,
                 const std::string& origin,
                 std::size_t begin,
                 std::vector<SourceEntry>& entries) {
  for (const auto& [key, value] : object.items()) {
    constexpr std::size_t kMostPlaces = 1000;  // each is a search in the whole text
    const std::size_t found =
        entries.size() < kMostPlaces ? find_key(key, text, begin) : std::string::npos;
    if (value.is_object()) {
      add_entries(value,
                  prefix + key + ".",
                  text,
                  origin,
                  found == text.npos ? begin : found + key.size(),
                  entries);
      continue;
    }
    SourceEntry entry = {.key = normal_key(prefix + key), .values = {}, .place = origin};
    entry.as_written = prefix + key;
    if (entries.size() < kMostPlaces) entry.place = place_at(found, key, text, origin);
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
  return place_at(std::string::npos, key, text, origin);
}

std::vector<SourceEntry> entries_of_tree(const Json& tree,
                                         const std::string& text,
                                         const std::string& origin) {
  std::vector<SourceEntry> entries;
  add_entries(tree, "", text, origin, 0, entries);
  return entries;
}

const SourceEntry* find_entry(const std::vector<SourceEntry>& entries, const std::string& key) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const SourceEntry& entry) {
    return entry.key == normal_key(key);
  });
  return found == entries.end() ? nullptr : &*found;
}

int64_t number_of_entry(const std::vector<SourceEntry>& entries,
                        const std::string& key,
                        int64_t otherwise) {
  const SourceEntry* entry = find_entry(entries, key);
  if (entry == nullptr) return otherwise;
  return estimator::parse_number<int64_t>(entry->value()).value_or(otherwise);
}

}  // namespace sim
