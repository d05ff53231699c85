// Differences between the versions of Megatron-LM's core that change what a rank holds.
#pragma once

#include <string_view>

#include "estimator/plan/plan.h"

namespace estimator {

/// Of "0.13.1" the 13; -1 for what is no version of 0.
int minor_version_of_core(std::string_view version);

/// With gradient accumulation fusion, autograd gets a stand-in in place of the weight gradient.
/// Returns whether the output layer uses TransformerEngine's stand-in, which is never freed: true
/// from core 0.14 on (get_dummy_wgrad in megatron/core/tensor_parallel/layers.py, August 2025).
/// Before, a stand-in is made and freed at once.
bool output_stand_in_lasts(const TrainingConfig& training);

/// When the overlapped gathers of updated parameters begin.
enum class GatherStart {
  kAtFirstUse,     ///< in the first forward, one bucket ahead
  kFirstWithStep,  ///< as the step begins, that of the first bucket; the others as kAtFirstUse
  kAllWithStep,    ///< as the step begins, on all stages together
};

/// With interleaved stages all together (--no-align-param-gather is not modelled). Else Megatron-LM
/// before core 0.9 begins the first in zero_grad() of its DistributedOptimizer, and later versions
/// in a hook before the first module that needs it (validate_args in megatron/training/arguments.py
/// and finish_param_sync in megatron/core/distributed/param_and_grad_buffer.py).
GatherStart gather_start(const Plan& plan);

/// Whether overlapped gathers would come one stage after the other, each when its first input has
/// come.
bool gathers_in_turn(const Plan& plan);

/// Whether the collectives of a column-parallel layer's backward run beside its products, other
/// than by user buffers: since 2 September 2021 (16c9044 of Megatron-LM), which is after v2.6. What
/// came before had no core; its version is written 0.0.
bool overlaps_linear_backward(const Plan& plan);

/// The most keys that the framework's own kernel for scale, mask and softmax takes; 0: it has none,
/// or the plan does not use it. 4,096 in Megatron-LM (is_kernel_available in
/// megatron/core/fusions/fused_softmax.py; since January 2022, 7a77abd9), 2,048 before and in
/// GPT-NeoX (megatron/model/fused_softmax.py).
int64_t fused_softmax_keys(const TrainingConfig& training);

/// How often a rank with experts gathers all its parameters after a step. It has two chained
/// optimizers, one for the experts and one for everything else. Unless the gather overlaps with the
/// forward, each of them gathers the parameters of both (DistributedOptimizer.step_with_ready_grads
/// in megatron/core/optimizer/distrib_optimizer.py).
int gathers_with_experts(const Plan& plan);

}  // namespace estimator
