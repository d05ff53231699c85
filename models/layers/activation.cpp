#include "models/layers/activation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>

#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

#include "models/layers/gated_activation.h"

namespace models {

using estimator::Activation;

at::Tensor activate_gate(const at::Tensor& gate, Activation activation) {
  if (activation == Activation::kQuickGeglu) return gate * at::sigmoid(kQuickGeluFactor * gate);
  return activation == Activation::kSwiglu ? at::silu(gate) : at::gelu(gate, "tanh");
}

namespace {

/// NewGELUActivation in activations.py of transformers, operator by operator: under autocast all
/// but the first product are in fp32, because pow() is.
at::Tensor gelu_of_operators(const at::Tensor& input) {
  const at::Tensor half = 0.5 * input;
  const at::Tensor inner = std::sqrt(2.0 / std::numbers::pi) * (input + 0.044715 * input.pow(3.0));
  return half * (1.0 + inner.tanh());
}

/// Both halves of a gated MLP's input, cut at the model's value; the second one also from below.
std::vector<at::Tensor> halves_of(const at::Tensor& input, const estimator::ModelConfig& model) {
  std::vector<at::Tensor> halves = input.chunk(2, -1);
  const double most = model.activation_func_clamp_value;
  if (most == 0) return halves;
  return {halves[0].clamp(std::nullopt, most), halves[1].clamp(-most, most)};
}

/// Those that are fused with the weights of experts.
bool fuses_weights(const ShardContext& context) {
  const Activation activation = context.plan.model.activation;
  return context.fused_activation() &&
         (activation == Activation::kSwiglu || activation == Activation::kQuickGeglu);
}

bool keeps_eight_bits(const ShardContext& context) {
  return context.plan.training.activation_func_fp8_input_store;
}

}  // namespace

at::Tensor activate(const at::Tensor& input, const ShardContext& context) {
  const Activation activation = context.plan.model.activation;
  if (activation == Activation::kGeluNew) return gelu_of_operators(input);
  if (activation == Activation::kRelu) return at::relu(input);
  if (activation == Activation::kGelu) return at::gelu(input, "tanh");
  const bool is_compiled =
      context.framework().fused_gated_activation &&
      activation == Activation::kSquaredRelu;  // squared_relu in activations.py
  if (context.fused_activation() || is_compiled) {
    return fused_activation(input,
                            /*bias=*/std::nullopt,
                            {.activation = activation,
                             .keeps_eight_bits = keeps_eight_bits(context),
                             .buffers = context.buffers});
  }
  if (activation == Activation::kSquaredRelu) return at::relu(input).square();
  const std::vector<at::Tensor> halves = halves_of(input, context.plan.model);
  const at::Tensor gate = activate_gate(halves[0], activation);
  // glu() in megatron/core/transformer/mlp.py adds an offset that is 0, too.
  const double offset = context.plan.model.glu_linear_offset;
  const bool adds = context.framework().fused_gated_activation || offset != 0;
  return adds ? gate * (halves[1] + offset) : gate * halves[1];
}

/// Megatron-LM's linear layers leave their bias to the activation, also where it is not fused.
bool activation_adds_bias(const ShardContext& context) {
  const estimator::ModelConfig& model = context.plan.model;
  return context.framework().fused_gated_activation && model.has_mlp_bias() &&
         model.activation != Activation::kRelu;
}

at::Tensor activate_biased(const at::Tensor& input,
                           const at::Tensor& bias,
                           const ShardContext& context) {
  const bool is_fused =
      context.fused_activation() && context.plan.model.activation != Activation::kSquaredRelu;
  if (!is_fused) return activate(input + bias, context);
  return fused_activation(input,
                          bias,
                          {.activation = context.plan.model.activation,
                           .computes = context.device_computes,
                           .keeps_eight_bits = keeps_eight_bits(context),
                           .buffers = context.buffers});
}

at::Tensor activate_weighted(const at::Tensor& input,
                             const at::Tensor& weights,
                             const ShardContext& context) {
  const estimator::ModelConfig& model = context.plan.model;
  if (fuses_weights(context)) {
    const bool cuts = model.activation_func_clamp_value > 0;
    return fused_weighted_activation(cuts ? at::cat(halves_of(input, model), -1) : input,
                                     weights,
                                     {.activation = model.activation,
                                      .linear_offset = model.glu_linear_offset,
                                      .buffers = context.buffers});
  }
  const at::Tensor activated = activate(input, context);
  return (activated * weights).to(activated.scalar_type());
}

}  // namespace models
