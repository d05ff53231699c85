// One step of AdamW, with PyTorch's fused kernel of whichever device the tensors are on.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/optimizer/optimizer_settings.h"

namespace models {

/// One tensor of each for every piece; the same counter may stand for several.
struct AdamwState {
  std::vector<at::Tensor> first_moments, second_moments, steps;
};

/// `state.steps` count this step already.
void step_adamw(const std::vector<at::Tensor>& weights,
                const std::vector<at::Tensor>& gradients,
                const AdamwState& state,
                const OptimizerSettings& settings);

}  // namespace models
