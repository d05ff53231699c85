// ZeRO stage 1 with whole parameters: each parameter has one data rank as its owner, which updates
// it and hands it out after the step.
//
// There are two ways. In InternEvo's HybridZeroOptimizer of July 2023
// (internlm/solver/optimizer/hybrid_zero_optim.py, commit fa7337b) the parameters of an owner lie
// together in one flat tensor, and the optimizer's state for them is one flat tensor. In the older
// way of Megatron-LM's layer-wise optimizer (_shard_params_ping_pong and allgather_params in
// megatron/core/optimizer/layer_wise_optimizer.py @d98e8a6) parameters stay where they are. Those
// of each rank are copied into one flat tensor to be handed out, and from there.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/data_parallel/data_parallel.h"
#include "models/shard/communicator.h"
#include "models/shard/observer.h"
#include "models/shard/parameters.h"

namespace models {

/// How whole parameters find their owners.
enum class WholeOwners {
  kNone,    ///< they have none
  kBySize,  ///< part_by_size(), as InternEvo does
  kInTurn,  ///< deal_in_turn(), as Megatron-LM does
};

/// The parameters that each of `ranks` owns. In the order of descending size, each parameter goes
/// to the rank that has the fewest elements so far, the first one if several have equally few
/// (_partition_param_list). Pure arithmetic.
std::vector<ParameterList> part_by_size(const ParameterList& parameters, int64_t ranks);

/// The parameters that each of `ranks` owns: in the order of ascending size, they are dealt to the
/// ranks in turn, and back: 0, 1, 1, 0, 0, 1, ... Pure arithmetic.
std::vector<ParameterList> deal_in_turn(const ParameterList& parameters, int64_t ranks);

class OwnedParameters {
 public:
  virtual ~OwnedParameters() = default;

  bool is_mine(const Parameter& parameter) const;
  /// Updated parameters reach the other ranks. The sizes differ, so each rank that owns some makes
  /// one broadcast, and all are started before the first wait.
  void hand_out();
  /// The piece with all parameters of this rank if they lie together; empty if they lie apart, or
  /// if it owns none.
  virtual std::optional<OptimizerPiece> joined_piece() const { return std::nullopt; }
  /// A copy of the gradient of that piece.
  at::Tensor joined_gradient(c10::ScalarType type) const;

 protected:
  /// If the group is null, this rank owns all parameters.
  OwnedParameters(std::vector<ParameterList> owned, std::shared_ptr<Communicator> data_group);

  std::size_t my_rank() const;
  const std::vector<ParameterList>& owned() const { return owned_; }  ///< by each data rank
  const ParameterList& mine() const { return owned_[my_rank()]; }

 private:
  /// Where the parameters that a rank owns, of which there are some, are sent from and received.
  virtual at::Tensor message(std::size_t rank) const = 0;
  /// What another rank sent is there.
  virtual void received(const at::Tensor& /*message*/, std::size_t /*rank*/) const {}

  std::vector<ParameterList> owned_;
  std::shared_ptr<Communicator> data_group_;
};

/// Null for WholeOwners::kNone. With kBySize it moves the parameters into one flat buffer of their
/// type, owner by owner.
std::unique_ptr<OwnedParameters> make_owned_parameters(
    WholeOwners owners,
    const ParameterList& parameters,
    const std::shared_ptr<Communicator>& data_group,
    Observer& observer);

}  // namespace models
