// The whole training: time with failures and checkpoints, GPU hours, cost.
#pragma once

#include <optional>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// What a plan, or the flags for a program, say of the whole training.
struct TrainingRun {
  int64_t world_size = 1;
  std::optional<int64_t> tokens_per_step;  ///< empty: not known
  std::optional<int64_t> steps;
  std::optional<int64_t> tokens;
  ReliabilityConfig reliability;
  std::optional<double> usd_per_gpu_hour;
  std::string said_by = "the plan";

  bool has_length() const { return steps || tokens; }
};
TrainingRun training_run(const Plan& plan);

/// The estimate of the whole training; empty when neither steps nor tokens are given. If both are,
/// steps count. Numbers about failures that are not given come from data/reliability.json, with
/// their source. Throws UserError when failures come too fast for any progress, and when tokens are
/// given and those of a step are not known.
std::optional<TrainingEstimate> training_estimate(const TrainingRun& run,
                                                  const Gpu& gpu,
                                                  double iteration_seconds);

}  // namespace estimator
