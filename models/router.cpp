#include "models/router.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros_like.h>

#include "models/expert_routing.h"

namespace models {

using estimator::RouterScore;

Router::Router(ShardContext& context, ParameterStore& store, const std::string& name)
    : context_(context),
      weight_(
          store.add({.name = name + ".weight",
                     .full_shape = {context.plan.model.num_experts, context.plan.model.hidden_size},
                     .sequence_partial = context.sequence_parallel()})) {}

/// topk_routing_with_score_function in megatron/core/transformer/moe/moe_utils.py; what topk finds
/// is not used.
at::Tensor Router::score(const at::Tensor& logits, const at::Tensor& chosen) const {
  const estimator::ModelConfig& model = context_.plan.model;
  constexpr double kSmall = 1e-20;
  const auto choose = [&](const at::Tensor& scores) {
    at::topk(scores.detach(), model.moe_router_topk, 1);
    return at::gather(scores, 1, chosen);
  };
  if (model.moe_router_score_function == RouterScore::kSigmoid) {
    const at::Tensor scores = choose(at::sigmoid(logits.to(at::kFloat)));
    if (model.moe_router_topk == 1) return scores;
    return scores / (scores.sum(-1, /*keepdim=*/true) + kSmall);
  }
  if (model.moe_router_pre_softmax) return choose(at::softmax(logits, -1, at::kFloat));
  return at::softmax(choose(logits), -1, at::kFloat);
}

/// apply_router_token_dropping: experts that are filled up get tokens of no weight.
RouterOutput Router::fill_to_capacity(RouterOutput output) const {
  if (!context_.plan.training.moe_pad_expert_input_to_capacity) return output;
  const int64_t capacity =
      std::min(expert_capacity(context_.plan, output.weights.size(0)), output.weights.size(0));
  const at::Tensor best =
      std::get<1>(at::topk(output.weights.detach(), capacity, 0, /*largest=*/true, false));
  const at::Tensor map = at::zeros_like(output.weights.detach()).scatter(0, best, 1).to(at::kBool);
  // The tokens that the mock routing fills experts up with are not these; theirs have no weight.
  return {.weights = output.weights * output.map, .map = map};
}

RouterOutput Router::forward(const at::Tensor& tokens, const at::Tensor& chosen) const {
  const ModuleScope scope(context_.observer, "router");
  const at::Tensor logits = at::linear(tokens, weight_.value);
  const at::Tensor weights = score(logits, chosen).to(logits.scalar_type());
  const at::Tensor none = at::zeros_like(logits.detach());
  return fill_to_capacity({.weights = at::scatter(none, 1, chosen, weights),
                           .map = none.to(at::kInt).scatter(1, chosen, 1).to(at::kBool)});
}

}  // namespace models
