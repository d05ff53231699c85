// The router of a mixture of experts: how much each of a token's experts counts (TopKRouter in
// megatron/core/transformer/moe/router.py), and the loss that keeps experts equally busy. Which
// experts those are is not for it to say here, see expert_routing.h; it works as if it were.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

struct RouterOutput {
  at::Tensor weights;  ///< [tokens, experts], zero for experts that were not chosen
  at::Tensor map;      ///< [tokens, experts] of bool: which expert gets which token
};

class Router {
 public:
  Router(ShardContext& context, ParameterStore& store, const std::string& name);
  /// `tokens` [tokens, h]; `chosen` [tokens, topk]: their experts.
  RouterOutput forward(const at::Tensor& tokens, const at::Tensor& chosen) const;

 private:
  /// Of all experts, fp32 [tokens, experts].
  at::Tensor scores_of_all(const at::Tensor& logits) const;
  /// What it would choose, which is not used.
  void choose(const at::Tensor& scores) const;
  at::Tensor within_groups(const at::Tensor& scores) const;
  at::Tensor aux_loss(const at::Tensor& logits, const at::Tensor& chosen) const;
  /// Weights of the chosen experts, fp32 [tokens, topk].
  at::Tensor score(const at::Tensor& logits, const at::Tensor& chosen) const;
  RouterOutput fill_to_capacity(RouterOutput output) const;

  ShardContext& context_;
  const Parameter& weight_;
};

}  // namespace models
