// Keys that are Megatron-LM's own arguments, and versions of its core, where what a rank holds
// depends on them.
#pragma once

#include "estimator/plan/plan.h"

namespace estimator {

class Rules;

/// Refuses them in plans of other frameworks, where they mean nothing.
void check_megatron_keys(Rules& rules);

/// Whether the output layer takes TransformerEngine's lasting stand-in for its gradient, with
/// gradient accumulation fusion: from core 0.14 on (get_dummy_wgrad in
/// megatron/core/tensor_parallel/layers.py, of August 2025). Before, it is dropped at once.
bool output_stand_in_lasts(const TrainingConfig& training);

/// How often a rank with experts gathers all its parameters after a step: unless that is overlapped
/// with the forward, each of its two chained optimizers, of experts and of all else, gathers the
/// parameters of both (DistributedOptimizer.step_with_ready_grads in
/// megatron/core/optimizer/distrib_optimizer.py).
int gathers_with_experts(const Plan& plan);

}  // namespace estimator
