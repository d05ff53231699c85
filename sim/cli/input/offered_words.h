// Words that a shell's completion offers as the value of an option. They stand with the option, in
// the text of CLI11's own help, which is not used.
#pragma once

#include <CLI/CLI.hpp>
#include <iterator>
#include <string>
#include <vector>

namespace sim {

/// Offers `words`, of which none has a '|'. Returns `option`.
CLI::Option* offer(CLI::Option* option, const std::vector<std::string>& words);

/// What was offered; empty: the value is a file, or free.
std::vector<std::string> offered_words(const CLI::Option& option);

/// The name of each of `rows`.
template <class Rows>
std::vector<std::string> names_of_rows(const Rows& rows) {
  std::vector<std::string> names;
  names.reserve(std::size(rows));
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

}  // namespace sim
