#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/shard_context.h"

namespace models {

/// The model's activation as the framework computes it. [..., f or, gated, 2 f] -> [..., f].
at::Tensor activate(const at::Tensor& input, const ShardContext& context);

/// Whether the framework's activation adds the bias of the layer before it, too.
bool activation_adds_bias(const ShardContext& context);

/// activate(input + bias), where it does: keeps the input and the bias alone, and sums the
/// input's gradient to the bias's (bias_gelu_impl, bias_swiglu_impl and bias_geglu_impl in
/// megatron/core/fusions).
at::Tensor activate_biased(const at::Tensor& input,
                           const at::Tensor& bias,
                           const ShardContext& context);

/// What a gated activation (SwiGLU, GeGLU) makes of its gate.
at::Tensor activate_gate(const at::Tensor& gate, estimator::Activation activation);

/// As activate(), each row of [rows, f] times its weight of [rows, 1]: what an expert computes for
/// a token, weighted by the token's router. A fused gated one keeps its input and the weights
/// alone, as Megatron-LM's weighted_bias_swiglu_impl.
at::Tensor activate_weighted(const at::Tensor& input,
                             const at::Tensor& weights,
                             const ShardContext& context);

}  // namespace models
