// Activation recompute: forward keeps the inputs only; backward runs the segment again, with the
// same random numbers, and then its backward (the reentrant form of Chen et al. 2016).
#pragma once

#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <memory>

#include "models/shard/observer.h"
#include "models/shard/output_keeper.h"

namespace models {

using Segment = std::function<at::Tensor(const torch::autograd::variable_list&)>;

struct CheckpointOptions {
  std::shared_ptr<OutputKeeper> keeper;  ///< of outputs that are kept; null: of none
  /// torch.utils.checkpoint with use_reentrant=False drops at once what the recompute returns;
  /// others, as Megatron-LM's, hold it until the segment's backward is over.
  bool holds_output = true;
};

/// segment(inputs), keeping only the inputs, and what passes through the keeper. Gradients of
/// parameters inside the segment are accumulated by the backward inside backward.
at::Tensor checkpoint(Segment segment,
                      const torch::autograd::variable_list& inputs,
                      Observer& observer,
                      const CheckpointOptions& options = {});

}  // namespace models
