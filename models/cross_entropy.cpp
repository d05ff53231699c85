#include "models/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <torch/csrc/autograd/custom_function.h>

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct VocabularyParallelCrossEntropy : torch::autograd::Function<VocabularyParallelCrossEntropy> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& logits,
                            const at::Tensor& labels,
                            const Group& group) {
    at::Tensor softmax = logits.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    at::Tensor largest = softmax.amax(-1);
    if (group) group->all_reduce_max(largest);
    softmax.sub_(largest.unsqueeze(-1));

    const int64_t rows = logits.size(-1);
    const int64_t first = group ? group->index() * rows : 0;
    const at::Tensor local = labels - first;
    const at::Tensor elsewhere = (local < 0).logical_or_(local >= rows);
    const at::Tensor target = local.masked_fill_(elsewhere, 0).unsqueeze(-1);
    at::Tensor predicted = softmax.gather(-1, target).squeeze(-1).masked_fill_(elsewhere, 0);
    if (group) group->all_reduce(predicted);

    at::Tensor sum = softmax.exp_().sum(-1);
    if (group) group->all_reduce(sum);
    softmax.div_(sum.unsqueeze(-1));
    context->save_for_backward({softmax, target, elsewhere});
    context->saved_data["dtype"] = static_cast<int64_t>(logits.scalar_type());
    return sum.log_().sub_(predicted);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    at::Tensor gradient = saved[0];
    const at::Tensor here = saved[2].logical_not().unsqueeze(-1).to(gradient.scalar_type());
    gradient.scatter_add_(-1, saved[1], here.neg_());
    gradient.mul_(gradients[0].unsqueeze(-1));
    const auto dtype = static_cast<at::ScalarType>(context->saved_data["dtype"].toInt());
    return {gradient.to(dtype), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor vocabulary_parallel_cross_entropy(const at::Tensor& logits,
                                             const at::Tensor& labels,
                                             const Group& group) {
  return VocabularyParallelCrossEntropy::apply(logits, labels, group);
}

at::Tensor plain_cross_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor rows = logits.to(at::kFloat).view({-1, logits.size(-1)});
  return at::cross_entropy_loss(rows, labels.reshape(-1), {}, at::Reduction::None)
      .view(labels.sizes());
}

}  // namespace models
