#include "models/mlp.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include "models/gated_activation.h"

namespace models {

using estimator::Activation;

Mlp::Mlp(ShardContext& context, ParameterStore& store, const std::string& name)
    : context_(context),
      first_(context,
             store,
             {.name = name + ".first",
              .inputs = context.plan.model.hidden_size,
              .outputs = context.plan.model.ffn_hidden_size *
                         (is_gated(context.plan.model.activation) ? 2 : 1),
              .bias = context.plan.model.add_bias_linear,
              .output_blocks = is_gated(context.plan.model.activation) ? 2 : 1}),
      second_(context,
              store,
              {.name = name + ".second",
               .inputs = context.plan.model.ffn_hidden_size,
               .outputs = context.plan.model.hidden_size,
               .bias = context.plan.model.add_bias_linear}) {}

at::Tensor Mlp::activate(const at::Tensor& input) const {
  const Activation activation = context_.plan.model.activation;
  if (activation == Activation::kRelu) return at::relu(input);
  if (activation == Activation::kGelu) return at::gelu(input, "tanh");
  if (context_.dialect().fused_gated_activation) return fused_gated_activation(input, activation);
  const auto halves = input.chunk(2, -1);
  return (activation == Activation::kSwiglu ? at::silu(halves[0]) : at::gelu(halves[0], "tanh")) *
         halves[1];
}

at::Tensor Mlp::forward(const at::Tensor& input) const {
  ModuleScope scope(context_.observer, "mlp");
  at::Tensor hidden = [&] {
    ModuleScope first(context_.observer, "first");
    return first_.forward(input);
  }();
  hidden = [&] {
    ModuleScope activation(context_.observer, "activation");
    return activate(hidden);
  }();
  ModuleScope second(context_.observer, "second");
  return second_.forward(hidden);
}

}  // namespace models
