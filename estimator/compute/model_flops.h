// Floating-point operations of one optimizer step of the whole model, as Megatron-LM counts them
// (megatron/training/training.py, num_floating_point_operations, @d98e8a6).
//
// Conventions: a multiply-add is 2; forward once, backward twice; causal core attention counts half
// of the score matrix (PaLM's MFU counts all of it); logits with the padded vocabulary; the
// embedding lookup, norms (but those of MLA's latents), activations and softmax count nothing.
#pragma once

#include "estimator/plan/plan.h"

namespace estimator {

struct StepFlops {
  double model = 0;                 ///< what the mathematics needs: for MFU
  double model_full_attention = 0;  ///< the same with all of the score matrix, as PaLM counts
  double hardware = 0;              ///< with what recompute does again: for HFU
};

/// FLOPs of one global batch of a resolved plan.
///
/// hardware: what recompute does again (recompute_choice.h): the forward of the core attention, of
/// the operators that are not listed, or of whole layers (not of the head). What a flash kernel
/// computes again inside its backward counts in neither.
StepFlops step_flops(const Plan& plan);

}  // namespace estimator
