// Which data rank owns most where whole parameters are dealt out in turn: Megatron-LM's Muon with
// the distributed optimizer and --no-use-layer-wise-param-layout (_shard_params_ping_pong in
// megatron/core/optimizer/layer_wise_optimizer.py @d98e8a6). The embedding and the output layer are
// larger than all matrices of layers. They come last, to ranks that depend on the number of
// parameters, and AdamW keeps one more moment for them than Muon for a matrix.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/plan/parallel_layout.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// A parameter as one tensor rank holds it.
struct ParameterSize {
  int64_t elements = 0;
  bool of_muon = false;  ///< a matrix that Muon updates; AdamW updates all others
  bool expert = false;   ///< of an expert, whether or not experts have data ranks of their own

  auto operator<=>(const ParameterSize&) const = default;
};

/// Whether a resolved plan deals whole parameters to its data ranks in turn.
bool deals_parameters_in_turn(const Plan& plan);

/// Whether experts have buffers and data ranks of their own. Experts that no ranks divide have the
/// replicas of all else (`allreduce` of TEGroupedLinear in
/// megatron/core/extensions/transformer_engine.py).
bool experts_are_apart(const Plan& plan);

/// The parameters of a stage of one chunk as Megatron-LM makes them: the embedding first, the
/// output layer last.
std::vector<ParameterSize> parameters_of_stage(const Plan& plan, int64_t stage);

/// The rank that gets number `turn` (from 0) of the parameters, which are sorted by ascending size:
/// 0, 1, 1, 0, 0, 1, ...
constexpr int64_t owner_in_turn(int64_t turn, int64_t ranks) {
  const int64_t place = turn % (2 * ranks);
  return place < ranks ? place : 2 * ranks - 1 - place;
}

/// The ranks of the stage, ascending, whose own parameters need most bytes for fp32 weights and
/// moments. `plan` deals parameters in turn.
std::vector<int64_t> ranks_that_own_most(const Plan& plan, int64_t stage);

}  // namespace estimator
