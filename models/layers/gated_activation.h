#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "estimator/plan/model_config.h"

namespace models {

struct FusedActivation {
  estimator::Activation activation;
  bool computes = true;  ///< not on the virtual GPU, where a bias costs nothing
};

/// act(input + bias), and of a gated one act(first half) * second half, as one function that keeps
/// only its input and the bias, where there is one, and recomputes the rest in backward, as
/// Megatron-LM's fused activations and TransformerEngine's do. [..., f or, gated, 2 f] -> [..., f].
at::Tensor fused_activation(const at::Tensor& input,
                            const std::optional<at::Tensor>& bias,
                            const FusedActivation& call);

/// SwiGLU, each row times its weight; keeps its input and the weights.
/// [rows, 2 f], [rows, 1] -> [rows, f].
at::Tensor fused_weighted_swiglu(const at::Tensor& input, const at::Tensor& weights);

}  // namespace models
