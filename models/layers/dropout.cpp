#include "models/layers/dropout.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_dropout_backward.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <string>
#include <tuple>

#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"
#include "models/shard/watched_operator.h"

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kForwardKernel = "megatron::bias_dropout_add";

/// Bytes that a row of a mask is longer than its elements.
int64_t row_padding(int64_t elements) {
  constexpr int64_t kLongest = 1024, kMultiple = 128;
  return elements > kLongest ? (kMultiple - elements % kMultiple) % kMultiple : 0;
}

at::Tensor padding_of(const at::Tensor& mask) {
  const int64_t rows = mask.numel() / mask.size(-1);
  return at::empty({rows, row_padding(mask.size(-1))}, mask.options());
}

/// The function is compiled again with a bias, and where gradients are needed.
void tune(const BiasDropoutAdd& call,
          const std::string& function,
          const at::Tensor& bias,
          const at::Tensor& output) {
  if (!call.buffers) return;
  const std::string name = function + (bias.defined() ? " with bias" : "") +
                           (c10::GradMode::is_enabled() ? " with gradient" : "");
  call.buffers->tune_compiled_at_first_call({.name = name}, output.device());
}

struct PaddedDropout : torch::autograd::Function<PaddedDropout> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& input,
                               double probability) {
    const auto [output, mask] = at::native_dropout(input, probability, /*train=*/true);
    context->save_for_backward({mask, padding_of(mask)});
    context->saved_data["scale"] = 1 / (1 - probability);
    context->mark_non_differentiable({mask});
    return {output, mask};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor mask = context->get_saved_variables()[0];
    return {
        at::native_dropout_backward(gradients[0], mask, context->saved_data["scale"].toDouble()),
        at::Tensor()};
  }
};

/// Inductor's kernels on a device that computes nothing: what they read and write is watched.
struct WatchedBiasDropoutAdd : torch::autograd::Function<WatchedBiasDropoutAdd> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& output,
                            const std::optional<at::Tensor>& bias,
                            const at::Tensor& residual,
                            const BiasDropoutAdd& call) {
    KernelScope kernel(kForwardKernel);
    keep(context, call);
    variable_list saved = {bias.value_or(at::Tensor())};
    if (call.probability == 0) {
      context->save_for_backward(saved);
      at::Tensor sum = residual + output;
      kernel.moves({output, saved[0], residual}, sum);
      return sum;
    }
    const auto [sum, mask] = at::native_dropout(output, call.probability, /*train=*/true);
    saved.push_back(mask);
    if (row_padding(mask.size(-1)) > 0) saved.push_back(padding_of(mask));
    context->save_for_backward(saved);
    kernel.moves({output, saved[0], residual}, {sum, mask});
    return sum;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& residual = gradients[0];
    const at::Tensor output =
        saved.size() == 1 ? residual : dropped_out(residual, saved, kept<BiasDropoutAdd>(context));
    at::Tensor bias;
    if (saved[0].defined()) {
      bias = watched_operator("aten::sum",
                              "dim_IntList",
                              {output, c10::List<int64_t>({0, 1}), false, c10::IValue()},
                              [&] { return at::empty_like(saved[0]); });
    }
    return {output, bias, residual, at::Tensor()};
  }

 private:
  /// The gradient of what dropout was given.
  static at::Tensor dropped_out(const at::Tensor& gradient,
                                const variable_list& saved,
                                const BiasDropoutAdd& call) {
    at::Tensor output = at::native_dropout_backward(gradient, saved[1], 1 / (1 - call.probability));
    tune(call, kForwardKernel + std::string(", backward"), saved[0], output);
    return output;
  }
};

/// The mask is undefined with probability 0.
std::tuple<at::Tensor, at::Tensor> with_mask(const at::Tensor& input, const BiasDropoutAdd& call) {
  if (call.probability == 0) return {input, at::Tensor()};
  if (!call.compiled || row_padding(input.size(-1)) == 0) {
    return at::native_dropout(input, call.probability, /*train=*/true);
  }
  const variable_list padded = PaddedDropout::apply(input, call.probability);
  return {padded[0], padded[1]};
}

at::Tensor sum_of(const at::Tensor& output,
                  const at::Tensor& bias,
                  const at::Tensor& residual,
                  const BiasDropoutAdd& call) {
  if (call.compiled && !call.computes) {
    const auto given = bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt;
    return WatchedBiasDropoutAdd::apply(output, given, residual, call);
  }
  KernelScope kernel(call.fused ? kForwardKernel : nullptr);
  const at::Tensor biased = bias.defined() ? output + bias : output;
  const auto [dropped, mask] = with_mask(biased, call);
  at::Tensor sum = residual.defined() ? residual + dropped : dropped;
  kernel.moves({output, bias, residual}, {sum, mask});
  return sum;
}

}  // namespace

at::Tensor bias_dropout_add(const at::Tensor& output,
                            const at::Tensor& bias,
                            const at::Tensor& residual,
                            const BiasDropoutAdd& call) {
  at::Tensor sum = sum_of(output, bias, residual, call);
  if (call.compiled) tune(call, kForwardKernel, bias, sum);
  return sum;
}

}  // namespace models
