// A cluster estimate as text.
#pragma once

#include <string>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/program_estimate.h"

namespace sim {

/// "fits: REASON", "too close to call: REASON" or "does not fit: REASON".
std::string verdict_text(const estimator::Verdict& verdict);

/// The text after the verdict: rank classes, terms of the worst rank, time, throughput, training,
/// assumptions and gaps. Memory is in GiB (2^30).
std::string estimate_text(const estimator::ClusterEstimate& estimate);

/// The verdict, the memory of the ranks that were run, and their step time if it is known.
std::string program_estimate_text(const estimator::ProgramEstimate& estimate);

/// Time, goodput, failures and cost of the whole training; "" without one.
std::string training_text(const std::optional<estimator::TrainingEstimate>& training);

/// What a measured step changes; "" without one.
std::string measured_step_text(const std::optional<estimator::MeasuredStep>& measured);

}  // namespace sim
