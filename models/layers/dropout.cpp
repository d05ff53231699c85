#include "models/layers/dropout.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/native_dropout_backward.h>
#include <torch/csrc/autograd/custom_function.h>

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Bytes that a row of a mask is longer than its elements.
int64_t row_padding(int64_t elements) {
  constexpr int64_t kLongest = 1024, kMultiple = 128;
  return elements > kLongest ? (kMultiple - elements % kMultiple) % kMultiple : 0;
}

struct PaddedDropout : torch::autograd::Function<PaddedDropout> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, double probability) {
    const auto [output, mask] = at::native_dropout(input, probability, /*train=*/true);
    const int64_t rows = mask.numel() / mask.size(-1);
    const at::Tensor padding = at::empty({rows, row_padding(mask.size(-1))}, mask.options());
    context->save_for_backward({mask, padding});
    context->saved_data["scale"] = 1 / (1 - probability);
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor mask = context->get_saved_variables()[0];
    return {
        at::native_dropout_backward(gradients[0], mask, context->saved_data["scale"].toDouble()),
        at::Tensor()};
  }
};

}  // namespace

at::Tensor compiled_dropout(const at::Tensor& input, double probability) {
  const bool padded = probability > 0 && row_padding(input.size(-1)) > 0;
  return padded ? PaddedDropout::apply(input, probability) : dropout(input, probability);
}

at::Tensor bias_dropout_add(const at::Tensor& output,
                            const at::Tensor& bias,
                            const at::Tensor& residual,
                            double probability,
                            bool compiled) {
  const at::Tensor sum = bias.defined() ? output + bias : output;
  return residual + (compiled ? compiled_dropout(sum, probability) : dropout(sum, probability));
}

}  // namespace models
