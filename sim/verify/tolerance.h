// When a sharded tensor counts as equal to the same part of the whole model's.
//
// Sharding changes the order of sums, so equality is not bitwise. For each tensor the norm of the
// difference may be
//
//     tolerance x max(norm of the tensor, floor x median gradient norm)
//
// Norms, because the elements of one tensor differ in size by orders; the floor, because some
// gradients are zero in exact arithmetic (a key's bias shifts all scores of a row alike), so that
// all that they hold is rounding.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/plan/plan.h"

namespace sim {

struct Tolerance {
  double relative = 0;
  double floor = 0;
};

/// fp32: 1e-5 and 1e-3. bf16 and fp16: see the source.
Tolerance tolerance_of(estimator::Dtype dtype);

/// What the norm of the difference may be.
double allowed_difference(const Tolerance& tolerance, double norm, double median_gradient_norm);

/// The middle value, the lower of two; 0 of none.
double median(std::vector<double> values);

}  // namespace sim
