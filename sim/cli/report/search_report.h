// A search as tables.
#pragma once

#include <string>

#include "estimator/what_if/search.h"
#include "sim/cli/input/table_format.h"

namespace sim {

/// The search in the format. As CSV: the layouts of the Pareto front alone.
std::string search_text(const estimator::Search& search, TableFormat format);

}  // namespace sim
