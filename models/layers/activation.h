#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/shard_context.h"

namespace models {

/// The model's activation, as the framework computes it: [..., f] -> [..., f], or if it is gated
/// [..., 2 f] -> [..., f].
at::Tensor activate(const at::Tensor& input, const ShardContext& context);

/// Whether the activation adds the bias of the linear layer before it, not the layer itself.
bool activation_adds_bias(const ShardContext& context);

/// activate(input + bias). Where one kernel does both, it keeps only the input and the bias; the
/// gradient of the bias is the sum of the input's gradient (bias_gelu_impl,
/// bias_swiglu_impl and bias_geglu_impl in megatron/core/fusions).
at::Tensor activate_biased(const at::Tensor& input,
                           const at::Tensor& bias,
                           const ShardContext& context);

/// QuickGELU is x sigmoid(1.702 x).
inline constexpr double kQuickGeluFactor = 1.702;

/// The function that a gated activation (SwiGLU, GeGLU, QuickGeGLU) applies to its gate.
at::Tensor activate_gate(const at::Tensor& gate, estimator::Activation activation);

/// activate(), with each row of the result [rows, f] multiplied by its weight [rows, 1]: the hidden
/// values of an expert, with the weight that the router gives to the token. If it is gated and
/// fused, it keeps only its input and the weights, as Megatron-LM's weighted_bias_swiglu_impl; of
/// gpt-oss both what is cut and what it is cut to (weighted_bias_quick_geglu_impl).
at::Tensor activate_weighted(const at::Tensor& input,
                             const at::Tensor& weights,
                             const ShardContext& context);

}  // namespace models
