// The whole training: time with failures and checkpoints, GPU hours, cost.
#pragma once

#include <optional>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// Empty when the plan says neither steps nor tokens; steps win over tokens. What the plan does not
/// say of failures comes from data/reliability.json, tagged. Throws UserError when failures come
/// too fast for any progress.
std::optional<TrainingEstimate> training_estimate(const Plan& plan,
                                                  const Gpu& gpu,
                                                  double iteration_seconds);

}  // namespace estimator
