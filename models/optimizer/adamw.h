// One step of AdamW, with PyTorch's fused kernel for the device of the tensors, or with
// TransformerEngine's where moments are in 16 bits.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/optimizer/optimizer_settings.h"

namespace models {

/// One tensor of each kind for every piece. Several pieces may share one step counter.
struct AdamwState {
  std::vector<at::Tensor> first_moments, second_moments, steps;
};

/// `state.steps` already include this step.
void step_adamw(const std::vector<at::Tensor>& weights,
                const std::vector<at::Tensor>& gradients,
                const AdamwState& state,
                const OptimizerSettings& settings);

}  // namespace models
