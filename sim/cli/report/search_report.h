// A search as tables.
#pragma once

#include <string>
#include <vector>

#include "estimator/what_if/search_result.h"
#include "sim/cli/report/table.h"

namespace sim {

/// The numbers of GPUs, the fastest layouts, the whole front, and the sample that was executed.
std::vector<TitledTable> search_tables(const estimator::Search& search, const ReportStyle& style);

/// The fewest GPUs that hold the model, and why not fewer, in lines; "" if one number was searched.
std::string fewest_text(const estimator::Search& search);

/// How many layouts were composed, and what it took.
std::string effort_text(const estimator::Search& search);

/// The search in the format. As CSV: search_tables() with times in seconds.
std::string search_text(const estimator::Search& search, const ReportStyle& style);

}  // namespace sim
