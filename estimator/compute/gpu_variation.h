// How much slower the slowest GPU of a job computes than a usual one: equal GPUs differ by what
// their silicon and their cooling let them clock at the limit of power, and ranks that wait for
// each other run as the slowest of them.
#pragma once

#include <cstdint>

#include "estimator/base/tagged.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// Expected largest of `count` >= 1 draws of the standard normal distribution; 0 for one draw.
double expected_largest_normal(int64_t count);

/// Standard deviation of the seconds that GPUs of one kind take for the same work, of their mean,
/// where their units of arithmetic bound it: the plan's word, else data/gpu_variation.json.
TaggedNumber gpu_deviation(const Plan& plan);

/// Seconds of the slowest of `gpus` over those of a usual one, at least 1: as if drawn from a
/// normal distribution of that `deviation`.
double slowest_gpu_slowdown(int64_t gpus, double deviation);

/// Of the plan's GPUs, which all wait for each other.
double slowest_gpu_slowdown(const Plan& plan);

}  // namespace estimator
