// What `recompute` in a plan means in each framework.
#pragma once

#include <cstdint>

#include "estimator/plan/plan.h"

namespace estimator {

/// The part of a transformer layer that is run again in backward.
enum class Recomputed {
  kNothing,
  kCoreAttention,      ///< Megatron-LM's selective
  kUnlistedOperators,  ///< TorchTitan's selective: all but the listed operators
  kLayer,              ///< full: everything, from the layer's input
};

/// What is recomputed in the `layer`th layer of a rank, counted from 0. TorchTitan's
/// selective_ac_option N means full recompute of every Nth layer of a rank, and 0 of all layers
/// (_apply_layer_sac in torchtitan/distributed/activation_checkpoint.py of v0.2.2).
Recomputed recomputed(const Plan& plan, int64_t layer);

}  // namespace estimator
