// The router of a mixture of experts (TopKRouter in megatron/core/transformer/moe/router.py): it
// computes the weight of each of a token's experts, and the loss that keeps experts equally busy.
// It also does the work of choosing the experts, but the choice is not used: expert_routing.h
// decides.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

struct RouterOutput {
  at::Tensor weights;  ///< [tokens, experts], zero for experts that were not chosen
  at::Tensor map;      ///< [tokens, experts] bool: which expert gets which token
};

/// Scores of all experts, fp32 [tokens, experts].
at::Tensor scores_of_all(const at::Tensor& logits, estimator::RouterScore function);
/// Scores of a sigmoid, so that those of a token add up to one.
at::Tensor normalized(const at::Tensor& scores);

class Router {
 public:
  Router(ShardContext& context, ParameterStore& store, const std::string& name);
  /// `tokens` is [tokens, h]; `chosen` is [tokens, topk], the experts of each token.
  RouterOutput forward(const at::Tensor& tokens, const at::Tensor& chosen) const;

 private:
  /// Runs the operators that choose the experts; the result is not used.
  void choose(const at::Tensor& scores) const;
  at::Tensor within_groups(const at::Tensor& scores) const;
  /// Scores of all experts for the balancing loss, and the map.
  RouterOutput balance_scores(const at::Tensor& logits, const at::Tensor& chosen) const;
  at::Tensor aux_loss(const at::Tensor& logits, const at::Tensor& chosen) const;
  at::Tensor logits_of(const at::Tensor& tokens) const;
  /// The experts' weights and which tokens they get, of Sinkhorn's assignment.
  RouterOutput assign(const at::Tensor& logits, const at::Tensor& chosen) const;
  /// The weights of the chosen experts and which tokens they get.
  RouterOutput choose_by_score(const at::Tensor& logits, const at::Tensor& chosen) const;
  /// Weights of the chosen experts, fp32 [tokens, topk].
  at::Tensor score(const at::Tensor& logits, const at::Tensor& chosen) const;
  RouterOutput fill_to_capacity(RouterOutput output) const;

  ShardContext& context_;
  const Parameter& weight_;
  const Parameter* bias_ = nullptr;  ///< null: none
};

}  // namespace models
