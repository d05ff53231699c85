#include "models/experts/expert_routing.h"

#include <ATen/ops/arange.h>

#include <algorithm>
#include <cmath>

#include "models/shard/context_chunks.h"

namespace models {
namespace {

/// Places in the sequence of a rank's rows: of its context chunks, its tensor rank's part.
std::vector<int64_t> sequence_places(const estimator::Plan& plan,
                                     const estimator::RankCoordinate& coordinate) {
  const int64_t rows = plan.local_sequence();
  const int64_t first = plan.parallelism.sequence_parallel ? coordinate.tensor * rows : 0;
  const at::Tensor of_context =
      own_chunks(at::arange(plan.sequence_length()),
                 0,
                 {.ranks = plan.parallelism.context, .index = coordinate.context});
  const int64_t* places = of_context.const_data_ptr<int64_t>() + first;
  return {places, places + rows};
}

/// Which expert the token at a place in the sequence goes to by one of its choices.
int64_t expert_in_turn(const estimator::ModelConfig& model, int64_t place, int64_t choice) {
  return (place * model.moe_router_topk + choice) % model.num_experts;
}

/// The first `capacity` tokens of an expert, filled up with those that are not its own.
std::vector<int64_t> at_capacity(std::vector<int64_t> own, int64_t tokens, int64_t capacity) {
  const auto kept = std::min(own.size(), static_cast<std::size_t>(capacity));
  std::size_t next_own = 0;
  std::vector<int64_t> filled(own.begin(), own.begin() + static_cast<int64_t>(kept));
  for (int64_t token = 0; token < tokens; ++token) {
    if (static_cast<int64_t>(filled.size()) == capacity) break;
    if (next_own < own.size() && own[next_own] == token)
      ++next_own;
    else
      filled.push_back(token);
  }
  return filled;
}

}  // namespace

int64_t expert_capacity(const estimator::Plan& plan, int64_t tokens) {
  const auto assigned = static_cast<double>(tokens * plan.model.moe_router_topk);
  return static_cast<int64_t>(std::ceil(assigned / static_cast<double>(plan.model.num_experts) *
                                        *plan.training.moe_expert_capacity_factor));
}

std::vector<int64_t> tokens_of_experts(const estimator::Plan& plan,
                                       const estimator::RankCoordinate& coordinate) {
  const int64_t experts = plan.model.num_experts, topk = plan.model.moe_router_topk;
  const int64_t batch = plan.training.micro_batch_size;
  if (plan.training.moe_pad_expert_input_to_capacity) {
    const int64_t tokens = plan.local_sequence() * batch;
    return std::vector<int64_t>(experts, std::min(expert_capacity(plan, tokens), tokens));
  }
  std::vector<int64_t> counts(experts, 0);
  for (const int64_t place : sequence_places(plan, coordinate)) {
    for (int64_t choice = 0; choice < topk; ++choice) {
      counts[expert_in_turn(plan.model, place, choice)] += batch;
    }
  }
  return counts;
}

ExpertRouting route_in_turn(const estimator::Plan& plan,
                            const estimator::RankCoordinate& coordinate) {
  const int64_t experts = plan.model.num_experts, topk = plan.model.moe_router_topk;
  const int64_t batch = plan.training.micro_batch_size;
  ExpertRouting routing;
  std::vector<std::vector<int64_t>> by_expert(experts);
  for (const int64_t place : sequence_places(plan, coordinate)) {
    for (int64_t sample = 0; sample < batch; ++sample, ++routing.tokens) {
      for (int64_t choice = 0; choice < topk; ++choice) {
        const int64_t expert = expert_in_turn(plan.model, place, choice);
        routing.chosen.push_back(expert);
        by_expert[expert].push_back(routing.tokens);
      }
    }
  }
  for (std::vector<int64_t>& tokens : by_expert) {
    if (plan.training.moe_pad_expert_input_to_capacity) {
      tokens =
          at_capacity(std::move(tokens), routing.tokens, expert_capacity(plan, routing.tokens));
    }
    routing.of_expert.push_back(static_cast<int64_t>(tokens.size()));
    routing.permuted.insert(routing.permuted.end(), tokens.begin(), tokens.end());
  }
  return routing;
}

}  // namespace models
