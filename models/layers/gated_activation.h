#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "estimator/plan/model_config.h"
#include "models/shard/framework_buffers.h"

namespace models {

struct FusedActivation {
  estimator::Activation activation;
  bool computes = true;           ///< false on the virtual GPU, where a bias costs nothing
  bool keeps_eight_bits = false;  ///< of the input, in e4m3 (activation_func_fp8_input_store)
  std::shared_ptr<FrameworkBuffers> buffers;  ///< null if the function is not compiled
};

/// act(input + bias), or if it is gated act(first half) * second half of input + bias. It is one
/// function that keeps only its input and the bias (if there is one) and recomputes the rest in
/// backward, as the fused activations of Megatron-LM and TransformerEngine do. [..., f] or, if
/// gated, [..., 2 f] -> [..., f].
at::Tensor fused_activation(const at::Tensor& input,
                            const std::optional<at::Tensor>& bias,
                            const FusedActivation& call);

struct WeightedActivation {
  estimator::Activation activation = estimator::Activation::kSwiglu;
  double linear_offset = 0;                             ///< of quick_geglu
  std::shared_ptr<FrameworkBuffers> buffers = nullptr;  ///< null if the function is not compiled
};

/// A gated activation, with each row multiplied by its weight: [rows, 2 f], [rows, 1] -> [rows, f].
/// It keeps its input and the weights.
at::Tensor fused_weighted_activation(const at::Tensor& input,
                                     const at::Tensor& weights,
                                     const WeightedActivation& call = {});

}  // namespace models
