// How much slower the slowest GPU of a job computes than a usual one. At the power limit, GPUs of
// one kind reach different clock rates, because their silicon and their cooling differ. Ranks that
// wait for each other run as slowly as the slowest of them.
#pragma once

#include <cstdint>

#include "estimator/base/tagged.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// The expected maximum of `count` >= 1 draws from the standard normal distribution; 0 for one
/// draw.
double expected_largest_normal(int64_t count);

/// Standard deviation of the time that GPUs of one kind take for the same work, as a share of the
/// mean, for work that is bound by arithmetic. It comes from the plan, else from
/// data/gpu_variation.json.
TaggedNumber gpu_deviation(const Plan& plan);
/// The value of data/gpu_variation.json.
TaggedNumber usual_gpu_deviation();

/// Time of the slowest of `gpus` GPUs divided by that of a usual one, at least 1. The GPUs count as
/// drawn from a normal distribution with that `deviation`.
double slowest_gpu_slowdown(int64_t gpus, double deviation);

/// The same for all GPUs of the plan, which wait for each other.
double slowest_gpu_slowdown(const Plan& plan);

}  // namespace estimator
