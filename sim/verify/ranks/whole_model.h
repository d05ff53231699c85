// The same training in one process that holds the whole model: what sharded ranks are compared
// with.
#pragma once

#include <vector>

#include "estimator/plan/plan.h"
#include "models/optimizer/optimizer.h"
#include "sim/verify/ranks/snapshot.h"
#include "sim/verify/tolerance.h"

namespace sim {

/// `plan` without dropout, whose masks depend on the layout.
estimator::Plan without_dropout(estimator::Plan plan);

/// `plan` on one rank: same model with the same padding, same weights, same samples in a step, all
/// degrees 1.
estimator::Plan whole_plan(const estimator::Plan& plan);

/// As models::default_optimizer, with an Adam epsilon of 1e-3. Where a gradient is rounding alone
/// Adam divides it by its own size: with 1e-8 rounding would be compared with rounding.
models::OptimizerSettings verification_optimizer(const estimator::Plan& plan);

/// One iteration of the whole model, and what sharded tensors may differ by from it.
struct WholeIteration {
  Snapshot snapshot;
  Snapshot wide;  ///< the same in fp32; empty for a plan in fp32
  double median_gradient_norm = 0;
  Tolerance gradients;
  Tolerance parameters;
};
using WholeModel = std::vector<WholeIteration>;

/// Runs the whole model, and where the plan's type has 16 bits a second time in fp32.
WholeModel run_whole_model(const estimator::Plan& plan);

}  // namespace sim
