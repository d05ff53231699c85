// The router of a mixture of experts: how much each of a token's experts counts (TopKRouter in
// megatron/core/transformer/moe/router.py). Which experts those are is not for it to say here, see
// expert_routing.h; it works as if it were.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/parameters.h"
#include "models/shard_context.h"

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
  /// Weights of the chosen experts, fp32 [tokens, topk].
  at::Tensor score(const at::Tensor& logits, const at::Tensor& chosen) const;
  RouterOutput fill_to_capacity(RouterOutput output) const;

  ShardContext& context_;
  const Parameter& weight_;
};

}  // namespace models
