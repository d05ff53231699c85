// ZeRO stage 1 with whole parameters that data ranks are dealt in turn: each updates its own, and
// gathers the others'.
//
// It is the older way of Megatron-LM's layer-wise optimizer (_shard_params_ping_pong and
// allgather_params in megatron/core/optimizer/layer_wise_optimizer.py @d98e8a6). Parameters stay
// where they are: for the gather, those of each rank are copied into one flat tensor, and from
// there.
#pragma once

#include <memory>
#include <vector>

#include "models/shard/communicator.h"
#include "models/shard/parameters.h"

namespace models {

/// The parameters that each of `ranks` owns: in the order of ascending size, they are dealt to the
/// ranks in turn, and back: 0, 1, 1, 0, 0, 1, ... Pure arithmetic.
std::vector<ParameterList> deal_in_turn(const ParameterList& parameters, int64_t ranks);

class DealtParameters {
 public:
  /// If the group is null, this rank owns all of them.
  DealtParameters(const ParameterList& parameters, std::shared_ptr<Communicator> data_group);

  bool is_mine(const Parameter& parameter) const;
  /// Gathers what the other ranks updated. The sizes differ, so each rank broadcasts, all at once.
  void gather() const;

 private:
  std::shared_ptr<Communicator> data_group_;
  std::vector<ParameterList> owned_;  ///< by each data rank
};

}  // namespace models
