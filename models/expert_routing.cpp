#include "models/expert_routing.h"

#include <algorithm>
#include <cmath>

namespace models {
namespace {

/// Places in the sequence of a rank's rows: of its context chunks, its tensor rank's part.
std::vector<int64_t> sequence_places(const estimator::Plan& plan,
                                     const estimator::RankCoordinate& coordinate) {
  const int64_t ranks = plan.parallelism.context;
  const int64_t chunk = plan.sequence_length() / (2 * ranks);
  std::vector<int64_t> of_context;
  for (const int64_t number : {coordinate.context, 2 * ranks - 1 - coordinate.context}) {
    for (int64_t row = 0; row < chunk; ++row) of_context.push_back(number * chunk + row);
  }
  if (ranks == 1) {
    of_context.clear();
    for (int64_t row = 0; row < plan.sequence_length(); ++row) of_context.push_back(row);
  }
  const int64_t rows = plan.local_sequence();
  const int64_t first = plan.parallelism.sequence_parallel ? coordinate.tensor * rows : 0;
  return {of_context.begin() + first, of_context.begin() + first + rows};
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
      counts[(place * topk + choice) % experts] += batch;
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
        const int64_t expert = (place * topk + choice) % experts;
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
