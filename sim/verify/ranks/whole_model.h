// Runs the same training in one process that holds the whole model. Sharded ranks are compared with
// it.
#pragma once

#include <vector>

#include "estimator/plan/plan.h"
#include "models/optimizer/optimizer.h"
#include "sim/verify/ranks/snapshot.h"
#include "sim/verify/tolerance.h"

namespace sim {

/// `plan` with dropout switched off, because dropout masks depend on the layout.
estimator::Plan without_dropout(estimator::Plan plan);

/// `plan` on one rank, with all parallel degrees 1: the same model with the same padding, the same
/// weights, and the same samples in a step.
estimator::Plan whole_plan(const estimator::Plan& plan);

/// models::default_optimizer() with an Adam epsilon of 1e-3. Some gradients consist of rounding
/// errors only, and Adam divides a gradient by its own size. With an epsilon of 1e-8, rounding
/// errors would be compared with rounding errors.
models::OptimizerSettings verification_optimizer(const estimator::Plan& plan);

/// One iteration of the whole model, and how much sharded tensors may differ from it.
struct WholeIteration {
  Snapshot snapshot;
  Snapshot wide;  ///< the same in fp32; empty for a plan in fp32
  double median_gradient_norm = 0;
  Tolerance gradients;
  Tolerance parameters;
};
using WholeModel = std::vector<WholeIteration>;

/// Runs the whole model; if the plan's type has 16 bits, runs it a second time in fp32.
WholeModel run_whole_model(const estimator::Plan& plan);

}  // namespace sim
