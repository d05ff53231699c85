#include "models/layers/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <string>

#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"

namespace models {
namespace {

using estimator::CrossEntropyFusion;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Where a rank's labels are among its rows of the vocabulary.
struct LocalLabels {
  LocalLabels(const at::Tensor& labels, int64_t rows, const Group& group) {
    const at::Tensor local = labels - (group ? group->index() * rows : 0);
    elsewhere = (local < 0).logical_or_(local >= rows);
    index = local.masked_fill(elsewhere, 0).unsqueeze(-1);
  }
  /// The values at the labels, fp32; 0 for a label that another rank has.
  at::Tensor pick(const at::Tensor& rows) const {
    return rows.gather(-1, index).squeeze(-1).to(at::kFloat).masked_fill_(elsewhere, 0);
  }
  at::Tensor elsewhere;  ///< [s, b] bool
  at::Tensor index;      ///< [s, b, 1]
};

/// softmax - 1 at the label, in place.
void subtract_one_at_labels(at::Tensor& softmax,
                            const at::Tensor& index,
                            const at::Tensor& elsewhere) {
  const at::Tensor here = elsewhere.logical_not().unsqueeze(-1).to(softmax.scalar_type());
  softmax.scatter_add_(-1, index, here.neg());
}

/// The function as Megatron-LM compiles it, or as it is written.
struct VocabularyLoss {
  bool compiled = false;
  std::shared_ptr<FrameworkBuffers> buffers;  ///< in which it is tuned; null if it is not

  void tune(const char* kernel,
            int configurations,
            const at::Tensor& output,
            at::TensorList changed = {}) const {
    if (!compiled || !buffers) return;
    buffers->tune_compiled_at_first_call({.name = std::string("cross entropy, ") + kernel,
                                          .changed = changed,
                                          .configurations = configurations},
                                         output.device());
  }
};

/// Of a reduction over rows of this width, which has one configuration unless the whole row may fit
/// into a block (add_persistent_rblock in torch/_inductor/codegen/triton.py of 2.11). A third one
/// comes where a block needs more than 32 registers for each thread, as on Hopper from this width
/// on (CachingAutotuner._dynamic_scale_rblock).
int reduction_configurations(int64_t width) {
  if (width <= 2048 || width > 32768) return 1;
  return width > 4096 ? 3 : 2;
}

/// exp in place; compiled, the result is made beside its input and copied back.
void exponentiate(at::Tensor& scores, const VocabularyLoss& loss) {
  if (!loss.compiled) {
    scores.exp_();
    return;
  }
  const at::Tensor beside = scores.exp();
  loss.tune("exp", reduction_configurations(scores.size(-1)), beside, {scores, scores});
  scores.copy_(beside);
}

/// Both over all ranks in one call (fused_vocab_parallel_cross_entropy in
/// megatron/core/fusions/fused_cross_entropy.py).
void sum_as_one(at::Tensor& predicted, at::Tensor& sum, Communicator& group) {
  const at::Tensor both = at::cat({predicted, sum});
  group.all_reduce(both);
  predicted = both.narrow(0, 0, predicted.size(0));
  sum = both.narrow(0, predicted.size(0), predicted.size(0));
}

struct VocabularyParallelCrossEntropy : torch::autograd::Function<VocabularyParallelCrossEntropy> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& logits,
                            const at::Tensor& labels,
                            const Group& group,
                            const VocabularyLoss& loss) {
    const bool compiled = loss.compiled;
    keep(context, loss);
    const auto kernel = [compiled](const char* name) { return compiled ? name : nullptr; };
    const variable_list in_fp32 = as_kernel(kernel("inductor::cross_entropy_max"), logits, [&] {
      const at::Tensor scores = logits.to(at::kFloat);
      return variable_list{scores, scores.amax(-1)};
    });
    const at::Tensor &scores = in_fp32[0], &largest = in_fp32[1];
    if (group) group->all_reduce_max(largest);

    std::optional<LocalLabels> local;
    const variable_list found = as_kernel(kernel("inductor::cross_entropy_exp"), scores, [&] {
      // Where the caller has cast the logits they stay as they are.
      at::Tensor softmax = scores.is_same(logits) ? scores - largest.unsqueeze(-1)
                                                  : at::Tensor(scores).sub_(largest.unsqueeze(-1));
      local.emplace(labels, logits.size(-1), group);
      at::Tensor predicted = local->pick(softmax);
      if (group && !compiled) group->all_reduce(predicted);
      loss.tune("predicted", pointwise_configurations(labels.numel()), predicted);
      exponentiate(softmax, loss);
      return variable_list{softmax, softmax.sum(-1), predicted};
    });
    at::Tensor softmax = found[0], sum = found[1], predicted = found[2];
    if (group && compiled) {
      sum_as_one(predicted, sum, *group);
    } else if (group) {
      group->all_reduce(sum);
    }

    context->saved_data["dtype"] = static_cast<int64_t>(logits.scalar_type());
    context->save_for_backward({softmax, local->index, local->elsewhere});
    return as_kernel(kernel("inductor::cross_entropy_loss"), softmax, [&] {
      softmax.div_(sum.unsqueeze(-1));
      loss.tune("softmax", pointwise_configurations(softmax.numel()), softmax, {softmax, softmax});
      return variable_list{sum.log_().sub_(predicted), softmax};
    })[0];
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& softmax = saved[0];
    const auto& loss = kept<VocabularyLoss>(context);
    const int configurations = pointwise_configurations(softmax.numel());
    const char* kernel = loss.compiled ? "inductor::cross_entropy_backward" : nullptr;
    const variable_list found = as_kernel(kernel, {softmax, gradients[0]}, [&] {
      at::Tensor gradient = loss.compiled ? softmax.clone() : softmax;
      loss.tune("copy of the softmax", configurations, gradient);
      subtract_one_at_labels(gradient, saved[1], saved[2]);
      loss.tune("labels", pointwise_configurations(saved[2].numel()), gradient, gradient);
      gradient.mul_(gradients[0].unsqueeze(-1));
      const auto dtype = static_cast<at::ScalarType>(context->saved_data["dtype"].toInt());
      const at::Tensor rounded = gradient.to(dtype);
      loss.tune("gradient", configurations, rounded, softmax);
      return variable_list{rounded, softmax};
    });
    return {found[0], at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

/// The kernel computes in fp32 registers; here each step rounds to the logits' type.
struct TransformerEngineCrossEntropy : torch::autograd::Function<TransformerEngineCrossEntropy> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& logits,
                            const at::Tensor& labels,
                            const Group& group) {
    const LocalLabels local(labels, logits.size(-1), group);
    at::Tensor softmax = logits.detach();  // the logits' own memory
    const at::Tensor own = as_kernel("te::online_softmax", logits, [&] {
      const at::Tensor largest = softmax.amax(-1);
      const at::Tensor predicted = local.pick(softmax);
      softmax.sub_(largest.unsqueeze(-1)).exp_();
      return at::stack({largest.to(at::kFloat), softmax.sum(-1, false, at::kFloat), predicted});
    });
    const at::Tensor all = gather_statistics(own, group);  // [ranks, 3, s, b]

    return as_kernel("te::cross_entropy", softmax, [&] {
      const at::Tensor maximum = all.select(1, 0).amax(0);
      const at::Tensor sum = all.select(1, 1).mul((all.select(1, 0) - maximum).exp_()).sum(0);
      softmax.mul_(((own[0] - maximum).exp_() / sum).unsqueeze(-1));
      subtract_one_at_labels(softmax, local.index, local.elsewhere);
      context->save_for_backward({softmax});
      return variable_list{sum.log().add_(maximum).sub_(all.select(1, 2).sum(0)), softmax};
    })[0];
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    at::Tensor gradient = context->get_saved_variables()[0];
    as_kernel("te::element_mul", gradient, [&] {
      gradient.mul_(gradients[0].unsqueeze(-1));
      return gradient;
    });
    return {gradient, at::Tensor(), at::Tensor()};
  }

 private:
  static at::Tensor gather_statistics(const at::Tensor& own, const Group& group) {
    if (!group) return own.unsqueeze(0);
    std::vector<int64_t> shape = own.sizes().vec();
    shape.insert(shape.begin(), group->size());
    at::Tensor all = at::empty(shape, own.options());
    group->all_gather(all, own);
    return all;
  }
};

at::Tensor parallel_log_softmax(const at::Tensor& logits, Communicator& group) {
  const at::Tensor largest = logits.amax(-1, /*keepdim=*/true);
  group.all_reduce_max(largest);
  const at::Tensor shifted = logits - largest;
  const at::Tensor sum = shifted.exp().sum(-1, /*keepdim=*/true);
  group.all_reduce(sum);
  return shifted - sum.log();
}

struct ParallelCrossEntropy : torch::autograd::Function<ParallelCrossEntropy> {
  /// logits [n, V / t], fp32; labels [n].
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& logits,
                            const at::Tensor& labels,
                            const Group& group) {
    keep(context, group);
    const at::Tensor scores = parallel_log_softmax(logits, *group);
    context->save_for_backward({scores, labels});
    const at::Tensor predicted = LocalLabels(labels, logits.size(-1), group).pick(scores);
    group->all_reduce(predicted);
    return predicted.neg();
  }

  /// Also the gradient of the log-softmax. What is written with one operator each has a buffer of
  /// its own.
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& scores = saved[0];
    const at::Tensor marks = at::zeros_like(scores);
    const LocalLabels local(saved[1], scores.size(-1), kept<Group>(context));
    const at::Tensor number = at::arange(scores.size(0), saved[1].options());
    marks.index_put_({number, local.index.squeeze(-1)},
                     local.elsewhere.to(scores.scalar_type()) - 1.0);
    at::Tensor sum;
    {
      const at::Tensor softmax = scores.exp();
      sum = marks + softmax;
    }
    return {sum * gradients[0].unsqueeze(-1), at::Tensor(), at::Tensor()};
  }
};

/// Each token's logits in fp32.
at::Tensor fp32_rows(const at::Tensor& logits) {
  return logits.to(at::kFloat).view({-1, logits.size(-1)});
}

}  // namespace

at::Tensor vocabulary_parallel_cross_entropy(const at::Tensor& logits,
                                             const at::Tensor& labels,
                                             const Group& group,
                                             CrossEntropyFusion fusion,
                                             const std::shared_ptr<FrameworkBuffers>& buffers) {
  if (fusion == CrossEntropyFusion::kTransformerEngine) {
    return TransformerEngineCrossEntropy::apply(logits, labels, group);
  }
  const VocabularyLoss loss{.compiled = fusion == CrossEntropyFusion::kNative, .buffers = buffers};
  return VocabularyParallelCrossEntropy::apply(logits, labels, group, loss);
}

at::Tensor plain_cross_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor rows = fp32_rows(logits);
  return at::cross_entropy_loss(rows, labels.reshape(-1), {}, at::Reduction::None)
      .view(labels.sizes());
}

at::Tensor parallel_cross_entropy(const at::Tensor& logits,
                                  const at::Tensor& labels,
                                  const Group& group) {
  const at::Tensor rows = fp32_rows(logits);
  return ParallelCrossEntropy::apply(rows, labels.reshape(-1), group).view(labels.sizes());
}

}  // namespace models
