// What is said of a key of a document beside its name and its type: the third argument of visit().
#pragma once

#include <initializer_list>

#include "estimator/base/range.h"

namespace estimator {

/// A flag of the command line that says a key of a plan.
struct Flag {
  const char* names;          ///< "--tensor-model-parallel-size,--tp": Megatron-LM's name first
  const char* constant = "";  ///< as JSON: what a flag writes that takes no value; "": it takes one
  const char* help = "";      ///< "": the key's own
  const char* synonyms = "";  ///< "adam=adamw": Megatron-LM's word = the plan's
  bool yields = false;        ///< another flag that writes the same key wins, where both are given
};

struct Option {
  // Implicit: most keys have a help text and nothing else.
  Option(const char* text, Range allowed = {}, std::initializer_list<Flag> by = {})  // NOLINT
      : help(text), range(allowed), flags(by) {}
  Option(const char* text, std::initializer_list<Flag> by) : Option(text, Range{}, by) {}

  /// Of a plan: the key changes nothing that one rank runs, so that profiles of ranks stay true.
  Option of_the_cluster() const {
    Option option = *this;
    option.changes_ranks = false;
    return option;
  }

  /// The name that the key had before: trees that use it are still read (with_new_keys()).
  Option formerly(const char* key) const {
    Option option = *this;
    option.old_key = key;
    return option;
  }

  const char* help;
  Range range;  ///< of a number, or of each number of a list
  /// It lives as long as the expression that makes it: for the time of a visit().
  std::initializer_list<Flag> flags;
  bool changes_ranks = true;
  const char* old_key = "";
};

}  // namespace estimator
