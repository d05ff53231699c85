#include "models/layers/gated_activation.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/layers/activation.h"
#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"

namespace models {
namespace {

using estimator::Activation;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Halves {
  explicit Halves(const at::Tensor& both)
      : gate(both.narrow(-1, 0, both.size(-1) / 2)),
        up(both.narrow(-1, both.size(-1) / 2, both.size(-1) / 2)) {}
  at::Tensor gate, up;
};

// A fused kernel has no temporaries; here each result is written where it stays
// (fused_bias_swiglu.py, fused_bias_geglu.py of megatron/core/fusions).
at::Tensor activated(const at::Tensor& input, Activation activation) {
  if (activation == Activation::kGelu) return at::gelu(input, "tanh");
  if (activation == Activation::kSquaredRelu) {
    return as_kernel("megatron::squared_relu", input, [&] { return at::relu(input).square_(); });
  }
  return as_kernel("megatron::gated_activation", input, [&] {
    const Halves in(input);
    return activate_gate(in.gate, activation).mul_(in.up);
  });
}

at::Tensor gradient_of(const at::Tensor& output_gradient,
                       const at::Tensor& input,
                       Activation activation) {
  if (activation == Activation::kGelu) return at::gelu_backward(output_gradient, input, "tanh");
  if (activation == Activation::kSquaredRelu) {
    return as_kernel("megatron::squared_relu_backward", {output_gradient, input}, [&] {
      return at::relu(input).mul_(2).mul_(output_gradient);
    });
  }
  return as_kernel("megatron::gated_activation_backward", {output_gradient, input}, [&] {
    const bool is_swiglu = activation == Activation::kSwiglu;
    const Halves in(input);
    at::Tensor input_gradient = at::empty_like(input);
    Halves out(input_gradient);
    is_swiglu ? at::silu_out(out.up, in.gate) : at::gelu_out(out.up, in.gate, "tanh");
    out.up.mul_(output_gradient);
    at::mul_out(out.gate, output_gradient, in.up);
    is_swiglu ? at::silu_backward_out(out.gate, out.gate, in.gate)
              : at::gelu_backward_out(out.gate, out.gate, in.gate, "tanh");
    return input_gradient;
  });
}

/// Functions are compiled once for each shape. Those of Megatron-LM that are not autograd's own
/// (squared_relu in megatron/core/activations.py) are compiled again where a gradient is needed.
void tune(const std::shared_ptr<FrameworkBuffers>& buffers,
          const char* function,
          const at::Tensor& output,
          bool needs_gradient = false) {
  if (!buffers) return;
  const std::string name = fmt::format(
      "{} {}{}", function, fmt::join(output.sizes(), "x"), needs_gradient ? " with gradient" : "");
  buffers->tune_compiled_at_first_call({.name = name}, output.device());
}

struct Fused : torch::autograd::Function<Fused> {
  static at::Tensor biased(const variable_list& saved, const FusedActivation& call) {
    return saved.size() > 1 && call.computes ? saved[0] + saved[1] : saved[0];
  }

  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const std::optional<at::Tensor>& bias,
                            const FusedActivation& call) {
    keep(context, call);
    variable_list saved{call.keeps_eight_bits ? input.to(at::kFloat8_e4m3fn) : input};
    if (bias) saved.push_back(*bias);
    context->save_for_backward(saved);
    saved[0] = input;
    return activated(biased(saved, call), call.activation);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto& call = kept<FusedActivation>(context);
    variable_list saved = context->get_saved_variables();
    if (call.keeps_eight_bits) saved[0] = saved[0].to(gradients[0].scalar_type());
    const at::Tensor gradient = gradient_of(gradients[0], biased(saved, call), call.activation);
    tune(call.buffers, "activation, backward", gradient);
    if (saved.size() == 1) return {gradient, at::Tensor(), at::Tensor()};
    // Autograd would sum it, too, but after it has dropped the output's gradient, which Python's
    // functions hold.
    const bool trains_bias = saved[1].requires_grad();
    return {gradient,
            trains_bias ? at::sum_to(gradient, saved[1].sizes()) : at::Tensor(),
            at::Tensor()};
  }
};

bool is_quick(const WeightedActivation& call) { return call.activation == Activation::kQuickGeglu; }

/// The function of the gate, and what its gradient is given the result's, each written into `out`.
void gate_into(at::Tensor& out, const at::Tensor& gate, const WeightedActivation& call) {
  is_quick(call) ? out.copy_(activate_gate(gate, call.activation)) : at::silu_out(out, gate);
}
void gate_gradient_into(at::Tensor& out, const at::Tensor& gate, const WeightedActivation& call) {
  if (!is_quick(call)) {
    at::silu_backward_out(out, out, gate);
    return;
  }
  const at::Tensor share = at::sigmoid(kQuickGeluFactor * gate);
  out.mul_(share * (1 + kQuickGeluFactor * gate * (1 - share)));
}

at::Tensor shifted(const at::Tensor& up, const WeightedActivation& call) {
  return call.linear_offset == 0 ? up : up + call.linear_offset;
}

struct KernelNames {
  const char* forward;
  const char* backward;
  const char* backward_of_weights;
};
KernelNames kernels_of(const WeightedActivation& call) {
  if (is_quick(call)) {
    return {"megatron::weighted_quick_geglu",
            "megatron::weighted_quick_geglu_backward",
            "megatron::weighted_quick_geglu_weights_backward"};
  }
  return {"megatron::weighted_swiglu",
          "megatron::weighted_swiglu_backward",
          "megatron::weighted_swiglu_weights_backward"};
}

struct FusedWeighted : torch::autograd::Function<FusedWeighted> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor& weights,
                            const WeightedActivation& call) {
    context->save_for_backward({input, weights});
    keep(context, call);
    return as_kernel(kernels_of(call).forward, {input, weights}, [&] {
      const Halves in(input);
      return activate_gate(in.gate, call.activation).mul_(shifted(in.up, call)).mul_(weights);
    });
  }

  /// The sums of the rows, by a kernel of their own; `scratch` is like the input.
  static at::Tensor gradient_of_weights(const variable_list& saved,
                                        const WeightedActivation& call,
                                        const at::Tensor& output_gradient,
                                        const at::Tensor& scratch) {
    const at::Tensor &input = saved[0], &weights = saved[1];
    return as_kernel(kernels_of(call).backward_of_weights, {output_gradient, input}, [&] {
      const Halves in(input);
      Halves out(scratch);
      gate_into(out.up, in.gate, call);
      at::mul_out(out.gate, out.up, shifted(in.up, call));
      return out.gate.mul_(output_gradient).sum(-1, /*keepdim=*/true).to(weights.scalar_type());
    });
  }

  static void write_gradient_of_input(const variable_list& saved,
                                      const WeightedActivation& call,
                                      const at::Tensor& output_gradient,
                                      const at::Tensor& input_gradient) {
    const at::Tensor &input = saved[0], &weights = saved[1];
    KernelScope kernel(kernels_of(call).backward);
    const Halves in(input);
    Halves out(input_gradient);
    gate_into(out.up, in.gate, call);
    out.up.mul_(output_gradient).mul_(weights);
    at::mul_out(out.gate, output_gradient, shifted(in.up, call)).mul_(weights);
    gate_gradient_into(out.gate, in.gate, call);
    kernel.moves({output_gradient, input, weights}, input_gradient);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto& call = kept<WeightedActivation>(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor input_gradient = at::empty_like(saved[0]);
    const at::Tensor of_weights = gradient_of_weights(saved, call, gradients[0], input_gradient);
    write_gradient_of_input(saved, call, gradients[0], input_gradient);
    tune(call.buffers, "weighted activation, backward", input_gradient);
    return {input_gradient, of_weights, at::Tensor()};
  }
};

}  // namespace

at::Tensor fused_weighted_activation(const at::Tensor& input,
                                     const at::Tensor& weights,
                                     const WeightedActivation& call) {
  at::Tensor output = FusedWeighted::apply(input, weights, call);
  tune(call.buffers, "weighted activation", output);
  return output;
}

at::Tensor fused_activation(const at::Tensor& input,
                            const std::optional<at::Tensor>& bias,
                            const FusedActivation& call) {
  at::Tensor output = Fused::apply(input, bias, call);
  const bool is_own_function = call.activation != Activation::kSquaredRelu;
  tune(call.buffers, "activation", output, !is_own_function && c10::GradMode::is_enabled());
  return output;
}

}  // namespace models
