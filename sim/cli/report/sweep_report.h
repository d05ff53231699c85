// A sweep as tables.
#pragma once

#include <string>
#include <vector>

#include "estimator/what_if/sweep.h"
#include "sim/cli/report/table.h"

namespace sim {

/// The points, with why some cannot be, and how memory and time grow.
std::vector<TitledTable> sweep_tables(const estimator::Sweep& sweep);

/// Where the plan stops fitting, in lines.
std::vector<std::string> sweep_limits(const estimator::Sweep& sweep);

/// The fastest point that fits, in a sentence.
std::string fastest_text(const estimator::Sweep& sweep);

/// The sweep in the format. As text and Markdown: the points, how memory and time grow, where the
/// plan stops fitting, the fastest point that fits. As CSV: the points alone, in bytes and seconds.
std::string sweep_text(const estimator::Sweep& sweep, const ReportStyle& style);

}  // namespace sim
