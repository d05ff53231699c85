#pragma once

#include <ATen/core/Tensor.h>

#include "estimator/plan/model_config.h"

namespace models {

/// act(first half) * second half as one function that keeps only its input and recomputes the rest
/// in backward, as Megatron-LM's fused SwiGLU and TransformerEngine's do. [..., 2 f] -> [..., f].
at::Tensor fused_gated_activation(const at::Tensor& input, estimator::Activation activation);

/// SwiGLU, each row times its weight; keeps its input and the weights.
/// [rows, 2 f], [rows, 1] -> [rows, f].
at::Tensor fused_weighted_swiglu(const at::Tensor& input, const at::Tensor& weights);

}  // namespace models
