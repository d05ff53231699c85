// Floating-point operations of one optimizer step of the whole model, as Megatron-LM counts them
// (megatron/training/training.py, num_floating_point_operations, @d98e8a6).
//
// Conventions: a multiply-add counts as 2 FLOPs; the backward counts twice the forward, but once
// for products with weights that do not change (beside adapters); causal core attention counts half
// of the score matrix (PaLM's MFU counts all of it); logits use the padded vocabulary. The
// embedding lookup, norms (except those of MLA's latents), activations and softmax do not count.
#pragma once

#include "estimator/plan/plan.h"

namespace estimator {

struct StepFlops {
  double model = 0;                 ///< without recompute, for MFU
  double model_full_attention = 0;  ///< the same with all of the score matrix, as PaLM counts
  double hardware = 0;              ///< with recompute, for HFU
};

/// FLOPs of one global batch of a resolved plan.
///
/// `hardware` adds what recompute runs again (frameworks.h): the forward of the core
/// attention, of the operators that are not listed, or of whole layers (not of the head). What a
/// flash kernel computes again inside its own backward counts in none of the three.
StepFlops step_flops(const Plan& plan);

}  // namespace estimator
