#include "estimator/base/field_words.h"

#include <algorithm>
#include <cctype>

#include "estimator/base/database.h"

namespace onerank_data {
extern const std::string_view field_words_json;
}

namespace estimator {
namespace {

/// "--FP8_format" is "fp8-format", "Qwen/Qwen3-8B" is "qwen3-8b".
std::string as_word(std::string_view typed) {
  typed.remove_prefix(typed.rfind('/') + 1);  // 0 without one
  typed.remove_prefix(std::min(typed.find_first_not_of('-'), typed.size()));
  std::string word(typed);
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char letter) {
    return letter == '_' || letter == ' ' ? '-' : static_cast<char>(std::tolower(letter));
  });
  return word;
}

/// A pattern may have a * at its beginning and at its end.
bool matches(std::string_view word, std::string_view pattern) {
  const bool begins_open = pattern.starts_with('*');
  if (begins_open) pattern.remove_prefix(1);
  const bool ends_open = pattern.ends_with('*');
  if (ends_open) pattern.remove_suffix(1);
  if (begins_open && ends_open) return word.find(pattern) != word.npos;
  if (begins_open) return word.ends_with(pattern);
  return ends_open ? word.starts_with(pattern) : word == pattern;
}

}  // namespace

const std::vector<FieldWord>& field_words() {
  static const auto rows =
      read_database<FieldWord>(onerank_data::field_words_json, "field_words.json");
  return rows;
}

const FieldWord* find_field_word(std::string_view typed) {
  const std::string word = as_word(typed);
  for (const FieldWord& row : field_words()) {
    for (const std::string& pattern : row.words) {
      if (matches(word, pattern)) return &row;
    }
  }
  return nullptr;
}

}  // namespace estimator
