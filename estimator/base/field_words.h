// Words that people who train models use and a plan does not have (data/field_words.json): refused
// by name, with what there is instead.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/option.h"

namespace estimator {

struct FieldWord {
  std::vector<std::string> words;  ///< "fp8*" stands for all that begins with "fp8"
  std::string what;                ///< why there is no such word here
  std::string instead;             ///< the way out
};
template <class Visitor>
void visit_fields(Visitor& visit, FieldWord& word) {
  visit("words", word.words, "spellings; a star at the end stands for any ending");
  visit("what", word.what, "why there is no such word here");
  visit("instead", word.instead, "the way out");
}

const std::vector<FieldWord>& field_words();

/// The row of a flag, a key, a value or a name as people type it: "--FP8_format" is "fp8-format",
/// "Qwen/Qwen3-8B" is "qwen3-8b".
/// Null when there is none.
const FieldWord* find_field_word(std::string_view typed);

}  // namespace estimator
