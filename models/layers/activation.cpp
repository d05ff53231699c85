#include "models/layers/activation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include "models/layers/gated_activation.h"

namespace models {

using estimator::Activation;

at::Tensor activate_gate(const at::Tensor& gate, Activation activation) {
  return activation == Activation::kSwiglu ? at::silu(gate) : at::gelu(gate, "tanh");
}

at::Tensor activate(const at::Tensor& input, const ShardContext& context) {
  const Activation activation = context.plan.model.activation;
  if (activation == Activation::kRelu) return at::relu(input);
  if (activation == Activation::kGelu) return at::gelu(input, "tanh");
  if (context.framework().fused_gated_activation) {
    return fused_activation(input, /*bias=*/std::nullopt, {.activation = activation});
  }
  const auto halves = input.chunk(2, -1);
  return activate_gate(halves[0], activation) * halves[1];
}

bool activation_adds_bias(const ShardContext& context) {
  const estimator::ModelConfig& model = context.plan.model;
  return context.framework().fused_gated_activation && model.add_bias_linear &&
         model.activation != Activation::kRelu;
}

at::Tensor activate_biased(const at::Tensor& input,
                           const at::Tensor& bias,
                           const ShardContext& context) {
  return fused_activation(
      input,
      bias,
      {.activation = context.plan.model.activation, .computes = context.device_computes});
}

at::Tensor activate_weighted(const at::Tensor& input,
                             const at::Tensor& weights,
                             const ShardContext& context) {
  const bool fused = context.framework().fused_gated_activation &&
                     context.plan.model.activation == Activation::kSwiglu;
  if (fused) return fused_weighted_swiglu(input, weights);
  const at::Tensor activated = activate(input, context);
  return (activated * weights).to(activated.scalar_type());
}

}  // namespace models
