// A sweep as tables.
#pragma once

#include <string>

#include "estimator/what_if/sweep.h"
#include "sim/cli/input/table_format.h"

namespace sim {

/// The sweep in the format. As text and Markdown: the points, how memory and time grow, where the
/// plan stops fitting, the fastest point that fits. As CSV: the points alone, in bytes and seconds.
std::string sweep_text(const estimator::Sweep& sweep, TableFormat format);

}  // namespace sim
