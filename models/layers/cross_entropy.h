// Cross-entropy over logits whose vocabulary is split over the tensor ranks (Shoeybi et al. 2019).
#pragma once

#include <ATen/core/Tensor.h>

#include "estimator/plan/plan.h"
#include "models/layers/sequence_mappings.h"

namespace models {

/// Loss of each token, fp32 [s, b]. logits [s, b, V / t], labels [s, b] in the whole vocabulary.
///
/// One fp32 buffer of the logits' shape is made; the softmax takes its place and is saved, and the
/// gradient takes the softmax's place, as in Megatron-LM. `group` may be null (t = 1).
///
/// fusion: with kNative Megatron-LM compiles the function, which then writes exp(logits) beside its
/// input and copies it back: for a moment a second fp32 buffer lives (fused_cross_entropy.py:
/// calculate_predicted_logits under torch.compile, which makes mutations functional). With
/// kTransformerEngine the gradient takes the place of the logits in their own type, and no fp32
/// buffer is made (transformer_engine/pytorch/triton/cross_entropy.py up to 2.11).
at::Tensor vocabulary_parallel_cross_entropy(const at::Tensor& logits,
                                             const at::Tensor& labels,
                                             const Group& group,
                                             estimator::CrossEntropyFusion fusion);

/// The same for t = 1 from PyTorch's own operators: log-softmax and negative log-likelihood.
at::Tensor plain_cross_entropy(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace models
