// What a reader of a foreign file hands on: keys with their values and where they stand.
#pragma once

#include <string>
#include <vector>

namespace sim {

struct SourceEntry {
  std::string key;                  ///< without leading dashes: "tensor-model-parallel-size"
  std::vector<std::string> values;  ///< none for a switch
  std::string place;                ///< "train.sh:12"
  bool is_unknown = false;          ///< its value is known to a shell alone

  /// The first value, or "".
  std::string value() const { return values.empty() ? "" : values.front(); }
};

}  // namespace sim
