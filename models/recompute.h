// Activation recompute: forward keeps the inputs only; backward runs the segment again, with the
// same random numbers, and then its backward (the reentrant form of Chen et al. 2016).
#pragma once

#include <torch/csrc/autograd/variable.h>

#include <functional>

#include "models/observer.h"

namespace models {

using Segment = std::function<at::Tensor(const torch::autograd::variable_list&)>;

/// segment(inputs), keeping only the inputs. Gradients of parameters inside the segment are
/// accumulated by the backward inside backward.
at::Tensor checkpoint(Segment segment,
                      const torch::autograd::variable_list& inputs,
                      Observer& observer);

}  // namespace models
