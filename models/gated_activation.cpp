#include "models/gated_activation.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <torch/csrc/autograd/custom_function.h>

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Halves {
  explicit Halves(const at::Tensor& both)
      : gate(both.narrow(-1, 0, both.size(-1) / 2)),
        up(both.narrow(-1, both.size(-1) / 2, both.size(-1) / 2)) {}
  at::Tensor gate, up;
};

// A fused kernel has no temporaries; here each result is written where it stays.
struct FusedSwiglu : torch::autograd::Function<FusedSwiglu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input) {
    context->save_for_backward({input});
    const Halves in(input);
    return at::silu(in.gate).mul_(in.up);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor input = context->get_saved_variables()[0];
    const Halves in(input);
    at::Tensor input_gradient = at::empty_like(input);
    Halves out(input_gradient);
    at::silu_out(out.up, in.gate);
    out.up.mul_(gradients[0]);
    at::mul_out(out.gate, gradients[0], in.up);
    at::silu_backward_out(out.gate, out.gate, in.gate);
    return {input_gradient};
  }
};

struct FusedGeglu : torch::autograd::Function<FusedGeglu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input) {
    context->save_for_backward({input});
    const Halves in(input);
    return at::gelu(in.gate, "tanh").mul_(in.up);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor input = context->get_saved_variables()[0];
    const Halves in(input);
    at::Tensor input_gradient = at::empty_like(input);
    Halves out(input_gradient);
    at::gelu_out(out.up, in.gate, "tanh");
    out.up.mul_(gradients[0]);
    at::mul_out(out.gate, gradients[0], in.up);
    at::gelu_backward_out(out.gate, out.gate, in.gate, "tanh");
    return {input_gradient};
  }
};

struct FusedWeightedSwiglu : torch::autograd::Function<FusedWeightedSwiglu> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor& weights) {
    context->save_for_backward({input, weights});
    const Halves in(input);
    return at::silu(in.gate).mul_(in.up).mul_(weights);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &weights = saved[1];
    const Halves in(input);
    at::Tensor input_gradient = at::empty_like(input);
    Halves out(input_gradient);
    at::silu_out(out.up, in.gate);
    at::mul_out(out.gate, out.up, in.up);
    const at::Tensor weight_gradient = out.gate.mul_(gradients[0]).sum(-1, /*keepdim=*/true);
    out.up.mul_(gradients[0]).mul_(weights);
    at::mul_out(out.gate, gradients[0], in.up);
    out.gate.mul_(weights);
    at::silu_backward_out(out.gate, out.gate, in.gate);
    return {input_gradient, weight_gradient.to(weights.scalar_type())};
  }
};

}  // namespace

at::Tensor fused_weighted_swiglu(const at::Tensor& input, const at::Tensor& weights) {
  return FusedWeightedSwiglu::apply(input, weights);
}

at::Tensor fused_gated_activation(const at::Tensor& input, estimator::Activation activation) {
  return activation == estimator::Activation::kSwiglu ? FusedSwiglu::apply(input)
                                                      : FusedGeglu::apply(input);
}

}  // namespace models
