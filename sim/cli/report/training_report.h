// The whole training as tables and text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "sim/cli/report/table.h"

namespace sim {

/// Where the time of the training goes; none without a training.
std::vector<TitledTable> training_tables(
    const std::optional<estimator::TrainingEstimate>& training);

/// Time, goodput, failures and cost of the whole training; "" without one.
std::string training_text(const std::optional<estimator::TrainingEstimate>& training,
                          const ReportStyle& style = {});

}  // namespace sim
