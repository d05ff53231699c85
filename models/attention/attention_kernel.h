// One call of a flash attention kernel, with what its backward needs: PyTorch's own, for the GPU or
// for the CPU. It stands for flash-attn's kernel and for cuDNN's, which keep the same. PyTorch's
// flash kernel wants values as wide as keys; for others there is its memory-efficient kernel, which
// keeps the same too, and on the CPU they are padded.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace models {

/// Query, key, value and the output are [s, b, heads, d] (sequence_dim 0: cuDNN under Megatron-LM)
/// or [b, s, heads, d] (sequence_dim 1: flash-attn). There may be fewer key/value heads.
struct AttentionCall {
  int64_t sequence_dim = 0;
  double dropout = 0;
  bool causal = true;                  ///< only where queries and keys are of the same rows
  bool cudnn = false;                  ///< it stands for cuDNN's kernel, else for flash-attn's
  bool writes_score_gradient = false;  ///< cuDNN's backward: see estimator/plan/attention_choice.h
};

struct Attended {
  at::Tensor output;        ///< contiguous
  at::Tensor log_sum;       ///< [b, heads, s] fp32: log of the sum of exponentials of each row
  at::Tensor seed, offset;  ///< of the dropout; undefined on the CPU
};

struct AttentionGradients {
  at::Tensor query, key, value;
};

Attended attend(const at::Tensor& query,
                const at::Tensor& key,
                const at::Tensor& value,
                const AttentionCall& call);

/// `attended` may hold the output and log-sum of more keys than these: then the gradients are the
/// part that comes from these.
AttentionGradients attend_backward(const at::Tensor& gradient,
                                   const at::Tensor& query,
                                   const at::Tensor& key,
                                   const at::Tensor& value,
                                   const Attended& attended,
                                   const AttentionCall& call);

}  // namespace models
