// One call of a flash attention kernel, and what its backward needs. The kernel is PyTorch's own,
// for the GPU or for the CPU. It stands for flash-attn's and cuDNN's kernels, which keep the same
// tensors. PyTorch's flash kernel needs values as wide as keys. For other widths PyTorch's
// memory-efficient kernel is used, which also keeps the same tensors; on the CPU the values are
// padded.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace models {

/// Query, key, value and the output are [s, b, heads, d] (sequence_dim 0: cuDNN under Megatron-LM)
/// or [b, s, heads, d] (sequence_dim 1: flash-attn). There may be fewer key/value heads.
struct AttentionCall {
  int64_t sequence_dim = 0;
  double dropout = 0;
  bool causal = true;                  ///< only allowed when queries and keys have the same rows
  bool cudnn = false;                  ///< the kernel stands for cuDNN's, else for flash-attn's
  bool writes_score_gradient = false;  ///< cuDNN's backward: see estimator/plan/attention_choice.h
  std::optional<double> scale = {};    ///< of the scores; if not given, 1 / sqrt(width of a head)
  /// Keys, with its own, that a query reads; 0: all of them. Only where it is causal.
  int64_t window = 0;
  bool computes = true;  ///< false on the virtual GPU, where a sink costs nothing
};

struct Attended {
  at::Tensor output;        ///< contiguous
  at::Tensor log_sum;       ///< [b, heads, s] fp32: log of the sum of exponentials of each row
  at::Tensor seed, offset;  ///< for dropout; undefined on the CPU
};

struct AttentionGradients {
  at::Tensor query, key, value;
  at::Tensor sink;  ///< undefined if there is none
};

/// `sink`, fp32 [heads], may be undefined: see sink.h.
Attended attend(const at::Tensor& query,
                const at::Tensor& key,
                const at::Tensor& value,
                const AttentionCall& call,
                const at::Tensor& sink = {});

/// `attended` may hold the output and log-sum over more keys than `key` has. The gradients are then
/// the part that comes from the keys in `key`.
AttentionGradients attend_backward(const at::Tensor& gradient,
                                   const at::Tensor& query,
                                   const at::Tensor& key,
                                   const at::Tensor& value,
                                   const Attended& attended,
                                   const AttentionCall& call,
                                   const at::Tensor& sink = {});

}  // namespace models
