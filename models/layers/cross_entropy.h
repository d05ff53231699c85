// Cross-entropy over logits whose vocabulary is split over the tensor ranks (Shoeybi et al. 2019).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "estimator/plan/plan.h"
#include "models/layers/sequence_mappings.h"
#include "models/shard/framework_buffers.h"

namespace models {

/// The loss of each token, fp32 [s, b]. `logits` is [s, b, V / t]; `labels` is [s, b], with numbers
/// in the whole vocabulary. `group` may be null (t = 1).
///
/// As in Megatron-LM, one fp32 buffer of the logits' shape is made. The softmax overwrites it and
/// is saved, and in backward the gradient overwrites the softmax.
///
/// With the fusion kNative Megatron-LM compiles the function, which makes mutations functional
/// (calculate_predicted_logits and calculate_gradients in fused_cross_entropy.py under
/// torch.compile). It then writes exp(logits) into a second fp32 buffer and copies it back, and in
/// backward copies the softmax, so that two such buffers live for a moment. At the first call its
/// kernels are tuned in `buffers`, if there are any. With kTransformerEngine the gradient
/// overwrites the logits in their own type, and no fp32 buffer is made
/// (transformer_engine/pytorch/triton/cross_entropy.py up to 2.11).
at::Tensor vocabulary_parallel_cross_entropy(const at::Tensor& logits,
                                             const at::Tensor& labels,
                                             const Group& group,
                                             estimator::CrossEntropyFusion fusion,
                                             const std::shared_ptr<FrameworkBuffers>& buffers = {});

/// The same for t = 1, with PyTorch's own operators: log-softmax and negative log-likelihood.
at::Tensor plain_cross_entropy(const at::Tensor& logits, const at::Tensor& labels);

/// The same for t > 1, of DTensors under loss_parallel() (_log_softmax and
/// _nll_loss_and_log_softmax_backward in torch/distributed/tensor/parallel/loss.py of 2.11). Of the
/// logits in fp32, [s, b, V / t], three are there at once in forward, and four in backward.
at::Tensor parallel_cross_entropy(const at::Tensor& logits,
                                  const at::Tensor& labels,
                                  const Group& group);

}  // namespace models
