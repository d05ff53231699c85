#include "models/experts/fused_router.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"

namespace models {
namespace {

using estimator::RouterScore;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor byte_map(const at::Tensor& logits, const at::Tensor& chosen) {
  return at::zeros(logits.sizes(), logits.options().dtype(at::kBool)).scatter_(1, chosen, true);
}

/// Backward of a function of scores, given its outputs in fp32; a result of type `type`.
at::Tensor through_scores(RouterScore function,
                          const at::Tensor& gradient,
                          const at::Tensor& scores,
                          at::ScalarType type) {
  return function == RouterScore::kSigmoid
             ? at::sigmoid_backward(gradient, scores).to(type)
             : at::_softmax_backward_data(gradient, scores, -1, at::kFloat).to(type);
}

/// Backward of normalized().
at::Tensor through_norm(const at::Tensor& gradient, const at::Tensor& scores) {
  const at::Tensor sum = scores.sum(-1, /*keepdim=*/true);
  return (gradient - (gradient * scores).sum(-1, /*keepdim=*/true) / sum) / sum;
}

bool is_normalized(const FusedScore& score, const at::Tensor& chosen) {
  return score.function == RouterScore::kSigmoid && chosen.size(1) > 1;
}

/// Scores of all experts, fp32; of a softmax of the chosen ones zero for all others.
at::Tensor kept_scores(const at::Tensor& logits,
                       const at::Tensor& chosen,
                       const FusedScore& score) {
  if (score.function == RouterScore::kSigmoid || score.scores_first) {
    return scores_of_all(logits, score.function);
  }
  const at::Tensor of_chosen = at::softmax(at::gather(logits, 1, chosen), -1, at::kFloat);
  return at::zeros(logits.sizes(), of_chosen.options()).scatter_(1, chosen, of_chosen);
}

struct FusedChoice : torch::autograd::Function<FusedChoice> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& logits,
                               const at::Tensor& chosen,
                               const FusedScore& score) {
    KernelScope kernel("te::fused_topk_with_score_function");
    at::Tensor weights = at::zeros_like(logits), map = byte_map(logits, chosen);
    const at::Tensor scores = kept_scores(logits, chosen, score);
    at::Tensor of_chosen = at::gather(scores, 1, chosen);
    if (is_normalized(score, chosen)) of_chosen = normalized(of_chosen);
    weights.scatter_(1, chosen, (of_chosen * score.scaling_factor).to(weights.scalar_type()));
    kernel.moves(logits, {weights, map, scores});
    context->save_for_backward({map, scores, chosen});
    context->mark_non_differentiable({map});
    keep(context, score);
    return {weights, map};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    KernelScope kernel("te::fused_topk_with_score_function_backward");
    const FusedScore& score = kept<FusedScore>(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &map = saved[0], &scores = saved[1], &chosen = saved[2];
    at::Tensor of_chosen =
        at::gather(gradients[0], 1, chosen).to(at::kFloat) * score.scaling_factor;
    if (is_normalized(score, chosen)) {
      of_chosen = through_norm(of_chosen, at::gather(scores, 1, chosen));
    }
    // Scores that are zero have no gradient, so that this is the softmax of the chosen ones, too.
    const at::Tensor of_scores = at::zeros_like(scores).scatter_(1, chosen, of_chosen);
    const at::Tensor of_logits =
        through_scores(score.function, of_scores, scores, gradients[0].scalar_type());
    kernel.moves({map, scores, gradients[0]}, of_logits);
    return {of_logits, at::Tensor(), at::Tensor()};
  }
};

struct FusedBalanceScores : torch::autograd::Function<FusedBalanceScores> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& logits,
                               const at::Tensor& chosen,
                               RouterScore function) {
    KernelScope kernel("te::fused_score_for_moe_aux_loss");
    const at::Tensor scores = scores_of_all(logits, function);
    at::Tensor whole = function == RouterScore::kSigmoid ? normalized(scores) : scores.clone();
    at::Tensor map = byte_map(logits, chosen);
    kernel.moves(logits, {whole, map, scores});
    context->save_for_backward({scores});
    context->saved_data["type"] = logits.scalar_type();
    context->mark_non_differentiable({map});
    keep(context, function);
    return {whole, map};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    KernelScope kernel("te::fused_score_for_moe_aux_loss_backward");
    const RouterScore function = kept<RouterScore>(context);
    const at::Tensor scores = context->get_saved_variables()[0];
    const bool is_sigmoid = function == RouterScore::kSigmoid;
    const at::Tensor of_scores = is_sigmoid ? through_norm(gradients[0], scores) : gradients[0];
    const at::Tensor of_logits =
        through_scores(function, of_scores, scores, context->saved_data["type"].toScalarType());
    kernel.moves({scores, gradients[0]}, of_logits);
    return {of_logits, at::Tensor(), at::Tensor()};
  }
};

struct FusedAuxLoss : torch::autograd::Function<FusedAuxLoss> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& scores,
                            const at::Tensor& counts,
                            double coefficient) {
    context->save_for_backward({counts});
    context->saved_data["rows"] = scores.size(0);
    context->saved_data["coefficient"] = coefficient;
    return as_kernel("te::fused_moe_aux_loss", {scores, counts}, [&] {
      return (scores.sum(0) * counts).sum() * coefficient;
    });
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor counts = context->get_saved_variables()[0];
    const at::Tensor of_scores = as_kernel("te::fused_moe_aux_loss_backward", counts, [&] {
      const double coefficient = context->saved_data["coefficient"].toDouble();
      return (counts * (gradients[0] * coefficient))
          .expand({context->saved_data["rows"].toInt(), counts.size(0)})
          .contiguous();
    });
    return {of_scores, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

RouterOutput fused_choice(const at::Tensor& logits,
                          const at::Tensor& chosen,
                          const FusedScore& score) {
  const variable_list output = FusedChoice::apply(logits, chosen, score);
  return {.weights = output[0], .map = output[1]};
}

RouterOutput fused_balance_scores(const at::Tensor& logits,
                                  const at::Tensor& chosen,
                                  RouterScore function) {
  const variable_list output = FusedBalanceScores::apply(logits, chosen, function);
  return {.weights = output[0], .map = output[1]};
}

at::Tensor fused_aux_loss(const at::Tensor& scores, const at::Tensor& counts, double coefficient) {
  return FusedAuxLoss::apply(scores, counts, coefficient);
}

}  // namespace models
