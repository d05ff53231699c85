#include "models/experts/router.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "models/experts/expert_routing.h"
#include "models/experts/fused_router.h"
#include "models/layers/attached_loss.h"
#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"
#include "models/shard/products.h"

namespace models {

using estimator::RouterScore;

namespace {

at::Tensor map_of(const at::Tensor& logits, const at::Tensor& chosen) {
  return at::zeros_like(logits.detach()).to(at::kInt).scatter(1, chosen, 1).to(at::kBool);
}

/// One of TransformerEngine's products, which writes its result in any type.
template <class Multiply>
at::Tensor product(const at::Tensor& left, const at::Tensor& right, const Multiply& multiply) {
  return as_kernel("te::mm", {left, right}, multiply);
}

/// TransformerEngine's products where it is there, in its workspace (RouterGatingLinearFunction in
/// megatron/core/transformer/moe/moe_utils.py).
struct RouterProduct : torch::autograd::Function<RouterProduct> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& tokens,
                            const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias,
                            const Products& products,
                            at::ScalarType type) {
    context->save_for_backward({tokens, weight});
    keep(context, products);
    if (bias) context->saved_data["type of bias"] = bias->scalar_type();
    return product(
        tokens, weight.t(), [&] { return products.linear(tokens, weight, bias).to(type); });
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const Products products = kept<Products>(context);
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const at::Tensor &tokens = saved[0], &weight = saved[1];
    const at::ScalarType type = gradients[0].scalar_type();
    const at::Tensor right = weight.to(type);
    const at::Tensor of_tokens =
        product(gradients[0], right, [&] { return products.multiply(gradients[0], right); });
    const at::Tensor inputs = tokens.to(type);
    const at::Tensor of_weight = product(
        gradients[0].t(), inputs, [&] { return weight_gradient(products, gradients[0], inputs); });
    return {of_tokens.to(tokens.scalar_type()),
            of_weight.to(weight.scalar_type()),
            of_bias(context, gradients[0]),
            at::Tensor(),
            at::Tensor()};
  }

 private:
  static at::Tensor of_bias(const torch::autograd::AutogradContext* context,
                            const at::Tensor& gradient) {
    const auto& kept_data = context->saved_data;
    const auto type = kept_data.find("type of bias");
    if (type == kept_data.end()) return {};
    return gradient.sum(0).to(type->second.toScalarType());
  }
};

/// The scores of the chosen experts as topk() gives them: of its inputs it keeps nothing.
struct ChosenScores : torch::autograd::Function<ChosenScores> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& scores,
                            const at::Tensor& chosen) {
    context->save_for_backward({chosen});
    context->saved_data["experts"] = scores.size(1);
    const KernelScope of_topk("aten::topk");
    return at::gather(scores, 1, chosen);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor chosen = context->get_saved_variables()[0], &gradient = gradients[0];
    const int64_t experts = context->saved_data["experts"].toInt();
    return {at::zeros({chosen.size(0), experts}, gradient.options()).scatter_(1, chosen, gradient),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor scores_of_all(const at::Tensor& logits, RouterScore function) {
  return function == RouterScore::kSigmoid ? at::sigmoid(logits.to(at::kFloat))
                                           : at::softmax(logits, -1, at::kFloat);
}

at::Tensor normalized(const at::Tensor& scores) {
  constexpr double kSmall = 1e-20;
  return scores / (scores.sum(-1, /*keepdim=*/true) + kSmall);
}

Router::Router(ShardContext& context, ParameterStore& store, const std::string& name)
    : context_(context),
      weight_(
          store.add({.name = name + ".weight",
                     .full_shape = {context.plan.model.num_experts, context.plan.model.hidden_size},
                     .sequence_partial = context.sequence_parallel()})) {
  if (!context.plan.model.has_mlp_bias()) return;
  bias_ = &store.add({.name = name + ".bias",
                      .full_shape = {context.plan.model.num_experts},
                      .initial_value = InitialValue::kZeros,
                      .sequence_partial = context.sequence_parallel()});
}

/// group_limited_topk in megatron/core/transformer/moe/moe_utils.py: the groups of highest scores.
at::Tensor Router::within_groups(const at::Tensor& scores) const {
  const estimator::ModelConfig& model = context_.plan.model;
  const int64_t groups = model.moe_router_num_groups, of_token = model.moe_router_group_topk;
  if (groups == 0) return scores;
  const int64_t tokens = scores.size(0);
  const at::Tensor by_group = scores.view({tokens, groups, -1});
  const at::Tensor of_group =
      std::get<0>(at::topk(by_group, model.moe_router_topk / of_token, -1)).sum(-1);
  const at::Tensor best =
      std::get<1>(at::topk(of_group, of_token, -1, /*largest=*/true, /*sorted=*/false));
  const at::Tensor mask = at::zeros_like(of_group)
                              .scatter_(1, best, 1)
                              .unsqueeze(-1)
                              .expand(by_group.sizes())
                              .reshape({tokens, -1});
  return scores.masked_fill(mask.to(at::kBool).logical_not(),
                            -std::numeric_limits<double>::infinity());
}

void Router::choose(const at::Tensor& scores) const {
  at::topk(within_groups(scores.detach()), context_.plan.model.moe_router_topk, 1);
}

/// topk_routing_with_score_function in megatron/core/transformer/moe/moe_utils.py.
at::Tensor Router::score(const at::Tensor& logits, const at::Tensor& chosen) const {
  const estimator::ModelConfig& model = context_.plan.model;
  const bool is_sigmoid = model.moe_router_score_function == RouterScore::kSigmoid;
  const bool scores_first = is_sigmoid || model.moe_router_pre_softmax;
  const at::Tensor scores =
      scores_first ? scores_of_all(logits, model.moe_router_score_function) : logits;
  choose(scores);
  at::Tensor weights = ChosenScores::apply(scores, chosen);
  if (!scores_first) weights = at::softmax(weights, -1, at::kFloat);
  if (is_sigmoid && model.moe_router_topk > 1) weights = normalized(weights);
  return model.moe_router_topk_scaling_factor > 0 ? weights * model.moe_router_topk_scaling_factor
                                                  : weights;
}

/// compute_routing_scores_for_aux_loss in moe_utils.py.
RouterOutput Router::balance_scores(const at::Tensor& logits, const at::Tensor& chosen) const {
  const RouterScore function = context_.plan.model.moe_router_score_function;
  if (context_.plan.training.moe_router_fusion) {
    return fused_balance_scores(logits, chosen, function);
  }
  at::Tensor scores = scores_of_all(logits, function);
  if (function == RouterScore::kSigmoid) scores = normalized(scores);
  choose(scores);
  return {.weights = scores, .map = map_of(logits, chosen)};
}

/// switch_load_balancing_loss_func: experts x coefficient / (topk x tokens^2) x the sum over
/// experts of their tokens x the sum of their scores; tokens are those of the micro-batch, or of
/// each sequence, on all ranks that share them.
at::Tensor Router::aux_loss(const at::Tensor& logits, const at::Tensor& chosen) const {
  const estimator::ModelConfig& model = context_.plan.model;
  auto [scores, map] = balance_scores(logits, chosen);
  double sequences = 1;
  if (model.moe_router_load_balancing_type == estimator::LoadBalancing::kSequenceAuxLoss) {
    sequences = static_cast<double>(context_.plan.training.micro_batch_size);
    scores = scores.reshape({context_.local_sequence(), -1});
    map = map.reshape({context_.local_sequence(), -1});
  }
  at::Tensor counts = map.sum(0);
  if (context_.groups.tensor_context) context_.groups.tensor_context->all_reduce(counts);
  const double tokens = static_cast<double>(logits.size(0)) / sequences *
                        static_cast<double>(group_size(context_.groups.tensor_context));
  const auto experts = static_cast<double>(model.num_experts);
  const auto topk = static_cast<double>(model.moe_router_topk);
  const double coefficient =
      experts * model.moe_aux_loss_coeff / (topk * tokens * tokens) / sequences;
  if (context_.plan.training.moe_router_fusion) return fused_aux_loss(scores, counts, coefficient);
  return (scores.sum(0) * counts).sum() * coefficient;
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

at::Tensor Router::logits_of(const at::Tensor& tokens) const {
  const bool is_fp32 = context_.plan.training.moe_router_dtype == estimator::RouterDtype::kFp32;
  const at::ScalarType type = is_fp32 ? at::kFloat : tokens.scalar_type();
  const auto bias = bias_ ? std::optional(bias_->value) : std::nullopt;
  if (context_.transformer_engine()) {
    return RouterProduct::apply(tokens, weight_.value, bias, context_.products(), type);
  }
  return at::linear(
      tokens.to(type), weight_.value.to(type), bias ? std::optional(bias->to(type)) : bias);
}

/// sinkhorn() in moe_utils.py, of which one round is run: a real run goes on until the shares of
/// the experts settle.
RouterOutput Router::assign(const at::Tensor& logits, const at::Tensor& chosen) const {
  const int64_t topk = context_.plan.model.moe_router_topk;
  {
    const c10::NoGradGuard no_grad;
    constexpr double kSmall = 1e-8;
    const at::Tensor cost = logits.to(at::kFloat).exp();
    const at::Tensor experts = at::ones({cost.size(1)}, cost.options());
    const at::Tensor of_tokens =
        ((experts * cost).sum(1) + kSmall).reciprocal() / static_cast<double>(cost.size(0));
    const at::Tensor of_experts = ((of_tokens.unsqueeze(1) * cost).sum(0) + kSmall).reciprocal() /
                                  static_cast<double>(cost.size(1));
    (experts - of_experts).abs().mean().item();
    at::topk(of_experts * cost * of_tokens.unsqueeze(1), topk, 1);
  }
  const at::Tensor scores = topk == 1
                                ? at::sigmoid(logits)
                                : at::softmax(logits, -1, at::kFloat).to(logits.scalar_type());
  const at::Tensor map = map_of(logits, chosen);
  return {.weights = scores * map, .map = map};
}

RouterOutput Router::choose_by_score(const at::Tensor& logits, const at::Tensor& chosen) const {
  const estimator::ModelConfig& model = context_.plan.model;
  if (context_.plan.training.moe_router_fusion) {
    const double factor = model.moe_router_topk_scaling_factor;
    return fused_choice(logits,
                        chosen,
                        {.function = model.moe_router_score_function,
                         .scores_first = model.moe_router_pre_softmax,
                         .scaling_factor = factor > 0 ? factor : 1});
  }
  const at::Tensor weights = score(logits, chosen).to(logits.scalar_type());
  return {.weights = at::scatter(at::zeros_like(logits.detach()), 1, chosen, weights),
          .map = map_of(logits, chosen)};
}

RouterOutput Router::forward(const at::Tensor& tokens, const at::Tensor& chosen) const {
  const ModuleScope scope(context_.observer, "router");
  const at::Tensor logits = logits_of(tokens);
  if (context_.plan.model.moe_router_load_balancing_type == estimator::LoadBalancing::kSinkhorn) {
    return fill_to_capacity(assign(logits, chosen));
  }
  RouterOutput output = fill_to_capacity(choose_by_score(logits, chosen));
  // Where a layer is run to be run again, its loss comes with the second run (TopKRouter.routing in
  // megatron/core/transformer/moe/router.py).
  if (!context_.plan.model.has_aux_loss() || !c10::GradMode::is_enabled()) return output;
  // Gradients are means over micro-batches and over replicas, of which the context ranks each have
  // their part of the sum alone.
  const double share = static_cast<double>(context_.plan.parallelism.context) /
                       static_cast<double>(context_.plan.micro_batches());
  output.weights = attach_loss(output.weights, aux_loss(logits, chosen), share);
  return output;
}

}  // namespace models
