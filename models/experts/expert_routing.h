// Which expert gets which token. Routers are made to balance their load, and a mock run has no
// trained one: tokens go to experts in turn by their place in the sequence, whatever the router
// says, as under Megatron-LM's --moe-router-force-load-balancing. So every rank knows how many
// tokens the others send, every layout of a plan trains the same model, and experts get equally
// many tokens, but for a remainder. The router's weights and gradients are real.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/plan/parallel_layout.h"
#include "estimator/plan/plan.h"

namespace models {

/// Of the tokens of one rank, in the order of its rows [s, b].
struct ExpertRouting {
  int64_t tokens = 0;
  std::vector<int64_t> chosen;     ///< [tokens x topk] experts of each token
  std::vector<int64_t> permuted;   ///< tokens by expert: those of expert 0, of expert 1, ...
  std::vector<int64_t> of_expert;  ///< how many of `permuted` are of each expert
};

/// Under a capacity (training.moe_pad_expert_input_to_capacity) each expert gets just so many:
/// first its own, then any others, which the router weights with nothing.
ExpertRouting route_in_turn(const estimator::Plan& plan,
                            const estimator::RankCoordinate& coordinate);

/// ExpertRouting::of_expert alone, of any rank.
std::vector<int64_t> tokens_of_experts(const estimator::Plan& plan,
                                       const estimator::RankCoordinate& coordinate);

/// get_capacity in megatron/core/transformer/moe/moe_utils.py.
int64_t expert_capacity(const estimator::Plan& plan, int64_t tokens);

}  // namespace models
