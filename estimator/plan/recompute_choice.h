// What a framework means by a plan's `recompute`.
#pragma once

#include <cstdint>

#include "estimator/plan/plan.h"

namespace estimator {

/// What of a transformer layer is run again in backward.
enum class Recomputed {
  kNothing,
  kCoreAttention,      ///< Megatron-LM's selective
  kUnlistedOperators,  ///< TorchTitan's selective: all but the operators of a list
  kLayer,              ///< full: everything, from the layer's input
};

/// Of the `layer`th layer of a rank, from 0. TorchTitan's selective_ac_option N is full recompute
/// of every Nth layer of a rank, 0 of all (_apply_layer_sac in torchtitan/distributed/
/// activation_checkpoint.py of v0.2.2).
Recomputed recomputed(const Plan& plan, int64_t layer);

}  // namespace estimator
