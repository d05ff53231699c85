// What a reader of a foreign file hands on: keys with their values and where they stand.
#pragma once

#include <string>
#include <vector>

namespace sim {

struct SourceEntry {
  std::string key;                     ///< without leading dashes: "tensor-model-parallel-size"
  std::vector<std::string> values;     ///< none for a switch, and for a tree's null
  std::string place;                   ///< "train.sh:12"
  bool is_unknown = false;             ///< its value is known to a shell alone
  std::string as_written = {};         ///< "--tensor-model-parallel-size"; empty: the key
  bool is_null = false;                ///< of a tree: null or an empty list, which is no switch
  bool may_be_arguments = false;       ///< no key, but a word of a command that nobody can decide
  std::vector<std::string> open = {};  ///< its words that a shell may make any arguments of

  const std::string& shown() const { return as_written.empty() ? key : as_written; }

  /// The first value, or "".
  std::string value() const { return values.empty() ? "" : values.front(); }

  /// As the user wrote it: "--fp8-format hybrid".
  std::string written() const;
  /// "train.sh:12: --fp8-format hybrid".
  std::string with_place() const { return place + ": " + written(); }
};

}  // namespace sim
