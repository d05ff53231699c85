// The whole training: time with failures and checkpoints, GPU hours, cost.
#pragma once

#include <optional>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// The estimate of the whole training; empty when the plan gives neither steps nor tokens. If it
/// gives both, steps count. Numbers about failures that the plan does not give come from
/// data/reliability.json, with their source. Throws UserError when failures come too fast for any
/// progress.
std::optional<TrainingEstimate> training_estimate(const Plan& plan,
                                                  const Gpu& gpu,
                                                  double iteration_seconds);

}  // namespace estimator
