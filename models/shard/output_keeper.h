// Selective recompute by operator: a segment's forward keeps the outputs of listed operators beside
// its inputs, and its recompute takes them from there instead of running these operators again.
//
// The list and its policy are TorchTitan's (torchtitan/distributed/activation_checkpoint.py of
// v0.2.2): fused attention, reduce-scatters, and products of two matrices (aten::mm, which a layer
// with a bias does not call) but for every second one. PyTorch asks the policy about every operator
// that is dispatched (torch.utils.checkpoint, create_selective_checkpoint_contexts); here the
// layers know which of their operators are listed and pass these alone through the keeper.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace models {

class OutputKeeper {
 public:
  using Outputs = std::vector<at::Tensor>;
  /// What a segment's forward kept and its recompute has not taken yet, in order.
  using Kept = std::deque<Outputs>;

  /// A segment's forward or, where that has kept something, its recompute.
  class Scope {
   public:
    /// `keeper` may be null.
    Scope(OutputKeeper* keeper, Kept* kept);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    OutputKeeper* keeper_;
  };

  /// What the operator `run` returns, or returned in the segment's forward; outside of segments it
  /// is run.
  Outputs keep(const std::function<Outputs()>& run);

  /// The same of a product of two matrices, of which every second is run again.
  at::Tensor keep_product(const std::function<at::Tensor()>& run);

 private:
  Kept* kept_ = nullptr;  ///< null outside of segments
  bool recompute_ = false;
  int64_t products_ = 0;  ///< of the segment so far
};

}  // namespace models
