// Words that people who train models use but that a plan does not have (data/field_words.json).
// They are refused by name, with a message that says what to use instead.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/option.h"

namespace estimator {

struct FieldWord {
  std::vector<std::string> words;  ///< "fp8*" begins with "fp8", "*-fp8" ends with it
  std::string what;                ///< why there is no such word here
  std::string instead;             ///< the way out
};
template <class Visitor>
void visit_fields(Visitor& visit, FieldWord& word) {
  visit("words", word.words, "spellings; a star at the begin or the end stands for any letters");
  visit("what", word.what, "why there is no such word here");
  visit("instead", word.instead, "the way out");
}

const std::vector<FieldWord>& field_words();

/// The row for a flag, key, value or name as people type it, or null when there is none.
/// "--FP8_format" is looked up as "fp8-format", "Qwen/Qwen3-8B" as "qwen3-8b". Words that tell how
/// names end are not looked for in flags.
const FieldWord* find_field_word(std::string_view typed);

}  // namespace estimator
