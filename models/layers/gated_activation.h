#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "estimator/plan/model_config.h"

namespace models {

struct FusedActivation {
  estimator::Activation activation;
  bool computes = true;  ///< false on the virtual GPU, where a bias costs nothing
};

/// act(input + bias), or if it is gated act(first half) * second half of input + bias. It is one
/// function that keeps only its input and the bias (if there is one) and recomputes the rest in
/// backward, as the fused activations of Megatron-LM and TransformerEngine do. [..., f] or, if
/// gated, [..., 2 f] -> [..., f].
at::Tensor fused_activation(const at::Tensor& input,
                            const std::optional<at::Tensor>& bias,
                            const FusedActivation& call);

/// SwiGLU, with each row multiplied by its weight: [rows, 2 f], [rows, 1] -> [rows, f]. It keeps
/// its input and the weights.
at::Tensor fused_weighted_swiglu(const at::Tensor& input, const at::Tensor& weights);

}  // namespace models
