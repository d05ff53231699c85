#include "sim/cli/import/source_entry.h"

#include <algorithm>

namespace sim {

std::string SourceEntry::written() const {
  std::string text = shown();
  constexpr std::size_t kMostValues = 4;
  for (std::size_t i = 0; i < std::min(values.size(), kMostValues); ++i) text += " " + values[i];
  if (values.size() > kMostValues) text += " ...";
  return text;
}

}  // namespace sim
