// Cross-entropy over logits whose vocabulary is split over the tensor ranks (Shoeybi et al. 2019).
#pragma once

#include <ATen/core/Tensor.h>

#include "models/sequence_mappings.h"

namespace models {

/// Loss of each token, fp32 [s, b]. logits [s, b, V / t], labels [s, b] in the whole vocabulary.
///
/// One fp32 buffer of the logits' shape is made; the softmax takes its place and is saved, and the
/// gradient takes the softmax's place, as in Megatron-LM. `group` may be null (t = 1).
at::Tensor vocabulary_parallel_cross_entropy(const at::Tensor& logits,
                                             const at::Tensor& labels,
                                             const Group& group);

/// The same for t = 1 from PyTorch's own operators: log-softmax and negative log-likelihood.
at::Tensor plain_cross_entropy(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace models
