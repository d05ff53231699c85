// Closed formulas of the literature beside what was executed.
#pragma once

#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "sim/cli/report/table.h"

namespace sim {

/// None unless they were asked for.
std::vector<TitledTable> textbook_tables(const estimator::ClusterEstimate& estimate);

}  // namespace sim
