// The memory below which a layout cannot be, without running it.
#pragma once

#include <cstdint>

#include "estimator/plan/plan.h"

namespace estimator {

/// Bytes that the stage with the most layers keeps at least: weights, gradients and the optimizer's
/// state of its layers. Embedding, head and activations do not count. All layers are taken to be
/// like the first one, as in plans that can be composed (obstacle_to_composition()).
int64_t least_bytes(const Plan& plan);

}  // namespace estimator
