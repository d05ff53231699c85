// One step of the cluster as tables and text: its parts, throughput, and the rates it was priced
// with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "sim/cli/report/table.h"

namespace sim {

/// The parts of one iteration.
TitledTable time_table(const estimator::StepTime& time);

/// How fast the GPU was taken to be; none if nothing was priced.
std::vector<TitledTable> rate_tables(const std::vector<estimator::RateTerm>& rates);

/// Seconds of one iteration: measured if the user gave them, else estimated.
double step_seconds(const estimator::ClusterEstimate& estimate);

/// What a measured step changes; "" without one.
std::string measured_step_text(const std::optional<estimator::MeasuredStep>& measured);

/// Tokens, FLOP/s and MFU; "" if nothing was priced.
std::string throughput_text(const estimator::ClusterEstimate& estimate);

/// "  board power 700 of 700 W (simulated): products and attention"
std::string board_words(const estimator::BoardUse& board);

/// How much the power of the board slows the rank that it slows most; "" if it slows none.
std::string board_text(const estimator::ClusterEstimate& estimate);

/// What the worst rank computes and moves in a step; "" if that is not known.
std::string rank_step_text(const estimator::ClusterEstimate& estimate);

}  // namespace sim
