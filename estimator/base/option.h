// What a list of fields says about a key besides its name and its type: the third argument of
// visit().
#pragma once

#include <initializer_list>

#include "estimator/base/range.h"

namespace estimator {

/// A flag of the command line that sets a key of a plan.
struct Flag {
  const char* names;          ///< "--tensor-model-parallel-size,--tp": Megatron-LM's name first
  const char* constant = "";  ///< JSON that a flag without a value writes; "": it takes a value
  const char* help = "";      ///< "": the help of the key
  const char* synonyms = "";  ///< "adam=adamw": Megatron-LM's word = the plan's
  bool yields = false;        ///< if another flag sets the same key, that flag wins
  bool is_ours = false;       ///< Megatron-LM has no flag of its first name
};

/// Marks a flag that Megatron-LM has not (parse_args of megatron/training/arguments.py @d98e8a64),
/// so that it tells nothing of a script.
constexpr Flag ours(Flag flag) {
  flag.is_ours = true;
  return flag;
}

struct Option {
  // Implicit: most keys have a help text and nothing else.
  Option(const char* text, Range allowed = {}, std::initializer_list<Flag> by = {})  // NOLINT
      : help(text), range(allowed), flags(by) {}
  Option(const char* text, std::initializer_list<Flag> by) : Option(text, Range{}, by) {}

  /// Marks a key of a plan that changes nothing that a rank runs, so that profiles of ranks stay
  /// valid.
  Option of_the_cluster() const {
    Option option = *this;
    option.changes_ranks = false;
    return option;
  }

  /// Gives the name that the key had before. Plans that use it are still read (with_new_keys()).
  Option formerly(const char* key) const {
    Option option = *this;
    option.old_key = key;
    return option;
  }

  const char* help;
  Range range;  ///< of a number, or of each number of a list
  /// Valid only during the call of visit(), as long as the expression that makes it.
  std::initializer_list<Flag> flags;
  bool changes_ranks = true;
  const char* old_key = "";
};

}  // namespace estimator
