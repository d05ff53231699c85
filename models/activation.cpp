#include "models/activation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include "models/gated_activation.h"

namespace models {

using estimator::Activation;

at::Tensor activate_gate(const at::Tensor& gate, Activation activation) {
  return activation == Activation::kSwiglu ? at::silu(gate) : at::gelu(gate, "tanh");
}

at::Tensor activate(const at::Tensor& input, const ShardContext& context) {
  const Activation activation = context.plan.model.activation;
  if (activation == Activation::kRelu) return at::relu(input);
  if (activation == Activation::kGelu) return at::gelu(input, "tanh");
  if (context.dialect().fused_gated_activation) return fused_gated_activation(input, activation);
  const auto halves = input.chunk(2, -1);
  return activate_gate(halves[0], activation) * halves[1];
}

at::Tensor activate_weighted(const at::Tensor& input,
                             const at::Tensor& weights,
                             const ShardContext& context) {
  const bool fused = context.dialect().fused_gated_activation &&
                     context.plan.model.activation == Activation::kSwiglu;
  if (fused) return fused_weighted_swiglu(input, weights);
  const at::Tensor activated = activate(input, context);
  return (activated * weights).to(activated.scalar_type());
}

}  // namespace models
