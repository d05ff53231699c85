// ZeRO stage 1 with whole parameters: each parameter has one data rank as its owner, which updates
// it and broadcasts it after the step.
//
// It follows InternEvo's HybridZeroOptimizer of July 2023
// (internlm/solver/optimizer/hybrid_zero_optim.py, commit fa7337b): the parameters of an owner lie
// together in one flat tensor, the optimizer's state for them is one flat tensor, and each rank
// that owns parameters makes one broadcast.
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

/// The parameters that each of `ranks` owns. In the order of descending size, each parameter goes
/// to the rank that has the fewest elements so far, the first one if several have equally few
/// (_partition_param_list). Pure arithmetic.
std::vector<std::vector<Parameter*>> part_by_size(const ParameterList& parameters, int64_t ranks);

class OwnedParameters {
 public:
  /// Moves the parameters into one flat buffer of their type, owner by owner. If the group is null,
  /// this rank owns all of them.
  OwnedParameters(const ParameterList& parameters,
                  std::shared_ptr<Communicator> data_group,
                  Observer& observer);

  bool is_mine(const Parameter& parameter) const;
  /// One piece with all parameters of this rank; empty if it owns none.
  std::vector<OptimizerPiece> optimizer_pieces() const;
  /// A copy of the gradient of that piece.
  std::vector<at::Tensor> step_gradients(c10::ScalarType type) const;
  /// Broadcasts the parameters of all owners, in their order. All broadcasts are started before the
  /// first wait.
  void broadcast();

  const at::Tensor& flat() const { return flat_; }

 private:
  struct Owner {
    std::vector<Parameter*> parameters;  ///< by descending size
    at::Tensor flat;                     ///< holds all of them
  };
  const Owner& mine() const;

  std::shared_ptr<Communicator> data_group_;
  at::Tensor flat_;
  std::vector<Owner> owners_;  ///< one for each data rank
};

}  // namespace models
