// Finds the item of a list that a command's argument names.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "estimator/base/errors.h"
#include "sim/cli/input/offered_words.h"

namespace sim {

/// Texts for an argument that is missing or that names nothing.
struct ChoiceTexts {
  const char* command;  ///< "list"
  const char* missing;  ///< "what to list?"
  const char* unknown;  ///< "unknown list"
};

/// The row whose `name` is `wanted`. Throws UserError with the nearest name.
template <class Rows>
const auto& named_choice(const Rows& rows, const std::string& wanted, const ChoiceTexts& texts) {
  const auto found = std::find_if(
      std::begin(rows), std::end(rows), [&](const auto& row) { return row.name == wanted; });
  if (found != std::end(rows)) return *found;
  throw estimator::UserError({.what = wanted.empty() ? texts.missing : texts.unknown,
                              .where = fmt::format("{} \"{}\"", texts.command, wanted),
                              .help = estimator::suggestion(wanted, names_of_rows(rows))});
}

}  // namespace sim
