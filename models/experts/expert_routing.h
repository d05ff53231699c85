// Which expert gets which token. A trained router balances the load of its experts, and a mock run
// has no trained router. So tokens go to the experts in turn by their place in the sequence,
// whatever the router says, as with Megatron-LM's --moe-router-force-load-balancing. Then every
// rank knows how many tokens the others send, every layout of a plan trains the same model, and
// experts get equally many tokens, except for a remainder. The router's weights and gradients are
// computed as usual.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/plan/parallel_layout.h"
#include "estimator/plan/plan.h"

namespace models {

/// The routing of the tokens of one rank, in the order of its rows [s, b].
struct ExpertRouting {
  int64_t tokens = 0;
  std::vector<int64_t> chosen;     ///< [tokens x topk] experts of each token
  std::vector<int64_t> permuted;   ///< tokens sorted by expert: those of expert 0, of expert 1, ...
  std::vector<int64_t> of_expert;  ///< how many entries of `permuted` each expert has
};

/// The routing of a rank's tokens. With padding to capacity
/// (training.moe_pad_expert_input_to_capacity) each expert gets exactly as many tokens as its
/// capacity: first its own, then any others, to which the router gives the weight zero.
ExpertRouting route_in_turn(const estimator::Plan& plan,
                            const estimator::RankCoordinate& coordinate);

/// ExpertRouting::of_expert alone, for any rank.
std::vector<int64_t> tokens_of_experts(const estimator::Plan& plan,
                                       const estimator::RankCoordinate& coordinate);

/// The most tokens that an expert takes out of `tokens` (get_capacity in
/// megatron/core/transformer/moe/moe_utils.py).
int64_t expert_capacity(const estimator::Plan& plan, int64_t tokens);

}  // namespace models
