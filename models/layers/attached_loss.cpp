#include "models/layers/attached_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/custom_function.h>

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct AttachLoss : torch::autograd::Function<AttachLoss> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& value,
                            const at::Tensor& loss,
                            double share) {
    context->save_for_backward({loss});
    context->saved_data["share"] = share;
    return value.view(value.sizes());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const double share = context->saved_data["share"].toDouble();
    const at::Tensor loss = context->get_saved_variables()[0];
    return {gradients[0], at::ones_like(loss) * share, at::Tensor()};
  }
};

}  // namespace

at::Tensor attach_loss(const at::Tensor& value, const at::Tensor& loss, double share) {
  return AttachLoss::apply(value, loss, share);
}

}  // namespace models
