// How a report is written.
#pragma once

#include <cstddef>
#include <limits>

#include "sim/cli/values/table_format.h"

namespace sim {

/// For lines as long as what they say: where no terminal shows them.
inline constexpr std::size_t kAnyColumns = std::numeric_limits<std::size_t>::max();

struct ReportStyle {
  TableFormat format = TableFormat::kText;  ///< of what is printed; JSON is not a report's matter
  std::size_t columns = kAnyColumns;        ///< of a line
  bool sources = false;  ///< with the rates and where numbers come from, what is assumed, and what
                         ///< is not modelled
};

}  // namespace sim
