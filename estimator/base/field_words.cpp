#include "estimator/base/field_words.h"

#include <algorithm>
#include <cctype>

#include "estimator/base/database.h"
#include "estimator/base/glob.h"

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

}  // namespace

const std::vector<FieldWord>& field_words() {
  static const auto rows =
      read_database<FieldWord>(onerank_data::field_words_json, "field_words.json");
  return rows;
}

const FieldWord* find_field_word(std::string_view typed) {
  const std::string word = as_word(typed);
  const bool is_flag = typed.substr(0, 2) == "--";
  for (const FieldWord& row : field_words()) {
    const bool are_ends_of_names = row.words.front().front() == '*';
    if (!(is_flag && are_ends_of_names) && matches_any_glob(word, row.words)) return &row;
  }
  return nullptr;
}

}  // namespace estimator
