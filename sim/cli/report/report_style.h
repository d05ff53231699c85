// How a report is written as text.
#pragma once

#include <cstddef>
#include <limits>

namespace sim {

/// For lines as long as what they say: where no terminal shows them.
inline constexpr std::size_t kAnyColumns = std::numeric_limits<std::size_t>::max();

struct ReportStyle {
  std::size_t columns = kAnyColumns;  ///< of a line
  bool sources = false;  ///< with the rates and where numbers come from, what is assumed, and what
                         ///< is not modelled
};

}  // namespace sim
