#include "models/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <torch/csrc/autograd/custom_function.h>

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rotates by the angle whose cosine and sine are given: two writes of each half, no temporary.
at::Tensor rotate(const at::Tensor& input, const at::Tensor& cos, const at::Tensor& sin, int sign) {
  const int64_t half = input.size(-1) / 2;
  const at::Tensor first = input.narrow(-1, 0, half);
  const at::Tensor second = input.narrow(-1, half, half);
  at::Tensor output = input * cos;
  output.narrow(-1, 0, half).addcmul_(second, sin.narrow(-1, 0, half), -sign);
  output.narrow(-1, half, half).addcmul_(first, sin.narrow(-1, half, half), sign);
  return output;
}

struct FusedRotary : torch::autograd::Function<FusedRotary> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor& cos,
                            const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return rotate(input, cos, sin, +1);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    return {rotate(gradients[0], saved[0], saved[1], -1), at::Tensor(), at::Tensor()};
  }
};

/// The memory stays the input's. A fused kernel needs no temporary; here there is one of its size.
struct InPlaceRotary : torch::autograd::Function<InPlaceRotary> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor& cos,
                            const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    input.detach().copy_(rotate(input, cos, sin, +1));
    return input;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    return {rotate(gradients[0], saved[0], saved[1], -1), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

RotaryEmbedding::RotaryEmbedding(const ShardContext& context)
    : fused_(context.dialect().fused_rotary) {
  const int64_t width = context.plan.model.kv_channels;
  const at::TensorOptions fp32 = context.options().dtype(at::kFloat);
  const at::Tensor exponents = at::arange(0, width, 2, fp32) / static_cast<double>(width);
  const at::Tensor frequencies = at::pow(context.plan.model.rotary_base, -exponents);
  const at::Tensor angles =
      at::outer(at::arange(context.plan.sequence_length(), fp32), frequencies);
  const at::Tensor both = own_chunks(at::cat({angles, angles}, -1), 0, context.context_place())
                              .unsqueeze(1)
                              .unsqueeze(1);
  cos_ = both.cos().to(context.options().dtype());
  sin_ = both.sin().to(context.options().dtype());
  for (const at::Tensor& table : {cos_, sin_}) {
    context.observer.memory_lasts(table,
                                  {estimator::MemoryCategory::kWorkspace, "rotary_embedding", ""});
  }
}

at::Tensor RotaryEmbedding::apply_in_place(const at::Tensor& input) const {
  return InPlaceRotary::apply(input, cos_, sin_);
}

at::Tensor RotaryEmbedding::apply(const at::Tensor& input) const {
  if (fused_) return FusedRotary::apply(input, cos_, sin_);
  const int64_t half = input.size(-1) / 2;
  const at::Tensor turned = at::cat({-input.narrow(-1, half, half), input.narrow(-1, 0, half)}, -1);
  return input * cos_ + turned * sin_;
}

}  // namespace models
