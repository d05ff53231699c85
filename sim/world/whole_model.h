// The same training in one process that holds the whole model: what sharded ranks are compared
// with.
#pragma once

#include <vector>

#include "estimator/plan/plan.h"
#include "models/optimizer.h"
#include "sim/world/snapshot.h"

namespace sim {

/// `plan` without dropout, whose masks depend on the layout.
estimator::Plan without_dropout(estimator::Plan plan);

/// `plan` on one rank: same model with the same padding, same weights, same samples in a step, all
/// degrees 1.
estimator::Plan whole_plan(const estimator::Plan& plan);

/// As models::default_optimizer, with an Adam epsilon of 1e-3. Where a gradient is rounding alone
/// Adam divides it by its own size: with 1e-8 rounding would be compared with rounding.
models::OptimizerSettings verification_optimizer(const estimator::Plan& plan);

/// The whole model after each iteration.
std::vector<Snapshot> run_whole_model(const estimator::Plan& plan);

}  // namespace sim
