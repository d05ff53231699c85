// Activation recomputation: the forward keeps only the inputs; the backward first runs the forward
// again, with the same random numbers and under the same autocast, and then its backward (the
// reentrant form of Chen et al. 2016).
#pragma once

#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <memory>

#include "models/layers/sequence_mappings.h"
#include "models/shard/delayed_scales.h"
#include "models/shard/observer.h"
#include "models/shard/output_keeper.h"

namespace models {

using Segment = std::function<at::Tensor(const torch::autograd::variable_list&)>;
/// A segment with several outputs.
using Segments =
    std::function<torch::autograd::variable_list(const torch::autograd::variable_list&)>;

struct CheckpointOptions {
  std::shared_ptr<OutputKeeper> keeper;  ///< keeps some outputs; null: none are kept
  /// Whether the output of the recomputation and its gradient are held until the segment's backward
  /// is over, as in Megatron-LM; torch.utils.checkpoint with use_reentrant=False frees the output
  /// at once, and the gradient when it was read.
  bool holds_output = true;
  /// If not null, each of these ranks keeps an equal part of the first input, which all of them
  /// hold whole, and the backward gathers it. The input tensor itself is cut meanwhile, so that its
  /// memory is freed; it has to be contiguous, and its elements divide by the ranks
  /// (distribute_saved_activations of CheckpointFunction in
  /// megatron/core/tensor_parallel/random.py, d98e8a6).
  Group dividing = nullptr;
  /// Of TransformerEngine's checkpoint, whose layers have them.
  std::shared_ptr<DelayedScales> scales = nullptr;
};

/// Runs segment(inputs) and keeps only the inputs and what passes through the keeper. Gradients of
/// parameters inside the segment are accumulated by the inner backward, which runs inside the outer
/// one.
at::Tensor checkpoint(const Segment& segment,
                      const torch::autograd::variable_list& inputs,
                      Observer& observer,
                      const CheckpointOptions& options = {});

torch::autograd::variable_list checkpoint(Segments segment,
                                          const torch::autograd::variable_list& inputs,
                                          Observer& observer,
                                          const CheckpointOptions& options);

/// A segment whose outputs are freed as soon as what follows has read them, and are computed again
/// before what follows runs backward (CheckpointWithoutOutput in
/// megatron/core/tensor_parallel/random.py, d98e8a6). What follows must keep the outputs themselves
/// for its backward, or views of them.
class DiscardedOutputs {
 public:
  /// Runs segment(inputs) and keeps the inputs.
  torch::autograd::variable_list run(Segments segment,
                                     const torch::autograd::variable_list& inputs,
                                     Observer& observer);
  /// Frees the outputs; the gradient of `following`, which was computed from them, brings them
  /// back.
  void discard(const at::Tensor& following) const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace models
