// What bounds a step, as text.
#pragma once

#include <string>
#include <vector>

#include "estimator/cluster/roofline.h"
#include "sim/cli/report/table.h"

namespace sim {

/// The bounds of the step, and its kernels by operator, module, phase and hotspot.
std::vector<TitledTable> roofline_tables(const estimator::Roofline& roofline);

/// The same as text.
std::string roofline_text(const estimator::Roofline& roofline, const ReportStyle& style = {});

}  // namespace sim
