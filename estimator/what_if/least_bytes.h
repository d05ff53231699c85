// The memory below which a layout cannot be, without running it.
#pragma once

#include <cstdint>

#include "estimator/plan/plan.h"

namespace estimator {

/// Bytes that the stage with the most layers keeps at least: weights, gradients and the optimizer's
/// state of its layers. Embedding, head, activations, dense layers before those with experts and
/// the state of an offloaded optimizer do not count, and of Muon all parameters count as matrices.
/// All others are taken to be like the last one, as in plans that can be composed
/// (obstacle_to_composition()).
int64_t least_bytes(const Plan& plan);

/// Whether a GPU has less memory than least_bytes(). False where not all layers are like the last
/// one, of which this is not known.
bool state_alone_is_too_large(const Plan& plan);

/// Layers of a stage that are like the model's last one, and the most that a stage has.
int64_t layers_alike(const Plan& plan, int64_t stage);
int64_t most_layers_alike(const Plan& plan);

}  // namespace estimator
