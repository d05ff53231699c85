// Selective recompute by operator: the forward of a segment keeps its inputs and the outputs of
// some listed operators. The recomputation takes these outputs instead of running the operators
// again.
//
// The list and its policy are TorchTitan's (torchtitan/distributed/activation_checkpoint.py of
// v0.2.2). The list has fused attention, reduce-scatters, and matrix products (aten::mm, which a
// layer with a bias does not call), of which every second one is recomputed all the same. PyTorch
// asks the policy about every operator that is dispatched (torch.utils.checkpoint,
// create_selective_checkpoint_contexts). Here the layers know which of their operators are listed,
// and pass only these through the keeper.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "models/shard/host_work.h"

namespace models {

class OutputKeeper {
 public:
  using Outputs = std::vector<at::Tensor>;
  /// Outputs that a segment's forward kept and that its recomputation has not used yet, in order.
  using Kept = std::deque<Outputs>;

  /// Lasts as long as the forward of a segment or, if `kept` already holds outputs, its
  /// recomputation.
  class Scope {
   public:
    /// `keeper` may be null.
    Scope(OutputKeeper* keeper, Kept* kept);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    OutputKeeper* keeper_;
    std::optional<DispatchedAgain> policy_;  ///< is asked by a TorchDispatchMode
  };

  /// Runs the operator and returns its outputs. In the recomputation of a segment it returns the
  /// outputs kept by the forward and runs nothing.
  Outputs keep(const std::function<Outputs()>& run);

  /// The same for a matrix product; in a recomputation every second product is run again.
  at::Tensor keep_product(const std::function<at::Tensor()>& run);

 private:
  Kept* kept_ = nullptr;  ///< null outside of segments
  bool recompute_ = false;
  int64_t products_ = 0;  ///< matrix products of the segment so far
};

}  // namespace models
