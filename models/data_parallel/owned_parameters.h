// ZeRO stage 1 with whole parameters: each has one data rank that updates it, its owner, and that
// broadcasts it after the step.
//
// As InternEvo's HybridZeroOptimizer of July 2023 (internlm/solver/optimizer/hybrid_zero_optim.py,
// commit fa7337b): an owner's parameters lie together in one flat tensor, the optimizer's state is
// one flat tensor for them, and there is one broadcast for each rank that owns something.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "models/data_parallel/data_parallel.h"
#include "models/shard/communicator.h"
#include "models/shard/observer.h"
#include "models/shard/parameters.h"

namespace models {

/// What each of `ranks` owns: by falling size, each parameter goes to the first of the ranks that
/// have fewest elements (_partition_param_list). Pure arithmetic.
std::vector<std::vector<Parameter*>> part_by_size(const ParameterList& parameters, int64_t ranks);

class OwnedParameters {
 public:
  /// Moves the parameters into one flat buffer of their type, owner by owner. Null group: all are
  /// this rank's.
  OwnedParameters(const ParameterList& parameters,
                  std::shared_ptr<Communicator> data_group,
                  Observer& observer);

  bool is_mine(const Parameter& parameter) const;
  /// All that is this rank's as one piece; none where it owns nothing.
  std::vector<OptimizerPiece> optimizer_pieces() const;
  /// The gradient of that piece: a copy.
  std::vector<at::Tensor> step_gradients(c10::ScalarType type) const;
  /// All are started before the first one is waited for, in the order of the owners.
  void broadcast();

  const at::Tensor& flat() const { return flat_; }

 private:
  struct Owner {
    std::vector<Parameter*> parameters;  ///< by falling size
    at::Tensor flat;                     ///< of all of them
  };
  const Owner& mine() const;

  std::shared_ptr<Communicator> data_group_;
  at::Tensor flat_;
  std::vector<Owner> owners_;  ///< one for each data rank
};

}  // namespace models
