// What would help, as a table and as text.
#pragma once

#include <string>

#include "estimator/cluster/cluster_estimate.h"
#include "sim/cli/report/table.h"

namespace sim {

/// What a change saves, "saves 1.20 GiB; the iteration is 1.79 s shorter"; "" if that is not known.
std::string gains_text(const estimator::Advice& advice, double iteration_seconds);

/// A row for each change, with its gain and the flags to type.
TitledTable advice_table(const estimator::ClusterEstimate& estimate);

/// The same, two lines for each change; "" without advice.
std::string advice_text(const estimator::ClusterEstimate& estimate, const ReportStyle& style);

}  // namespace sim
