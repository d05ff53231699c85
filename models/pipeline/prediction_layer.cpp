#include "models/pipeline/prediction_layer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/max.h>
#include <ATen/ops/roll.h>
#include <c10/core/GradMode.h>

#include "models/layers/recompute.h"
#include "models/layers/sequence_mappings.h"

namespace models {
namespace {

using torch::autograd::variable_list;

LinearSpec joint_projection_spec(const ShardContext& context, const std::string& name) {
  const int64_t hidden = context.plan.model.hidden_size;
  return {.name = name + ".eh_proj", .inputs = 2 * hidden, .outputs = hidden};
}

/// Of each rank's rows of the vocabulary the largest score, and of these the largest
/// (_vocab_parallel_argmax).
at::Tensor predicted(const at::Tensor& scores, const Group& group) {
  if (!group) return at::argmax(scores, -1);
  const auto [largest, row] = at::max(scores, -1);
  const at::Tensor of_ranks = gather_sequence(largest.unsqueeze(0), *group, Parts::kList);
  const at::Tensor rows = gather_sequence(row.unsqueeze(0), *group, Parts::kList);
  const at::Tensor rank = at::argmax(of_ranks, 0);
  return rank * scores.size(-1) + at::gather(rows, 0, rank.unsqueeze(0)).squeeze(0);
}

}  // namespace

PredictionLayer::PredictionLayer(ShardContext& context,
                                 ParameterStore& store,
                                 int64_t depth,
                                 const LayerNumber& number,
                                 const SharedParts& shared)
    : context_(context),
      name_("mtp.layers." + std::to_string(depth)),
      embedding_norm_(context, store, name_ + ".enorm"),
      hidden_norm_(context, store, name_ + ".hnorm"),
      projection_(context, store, joint_projection_spec(context, name_)),
      layer_(context, store, name_ + "." + kLayer, number, shared),
      final_norm_(context, store, name_ + ".final_layernorm") {}

at::Tensor PredictionLayer::forward(const at::Tensor& hidden, const at::Tensor& embedded) const {
  const auto segment = [this](const variable_list& inputs) {
    const ModuleScope scope(context_.observer, name_);
    return compute(inputs[0], inputs[1]);
  };
  if (!layer_.is_checkpoint()) return segment({hidden, embedded});
  // Where tensor ranks divide the hidden states, those that the caller holds stay whole.
  return in_layers(context_.delayed_scales.get(), [&] {
    return checkpoint(segment,
                      {hidden.view(hidden.sizes()), embedded},
                      context_.observer,
                      layer_checkpoint(context_));
  });
}

at::Tensor PredictionLayer::compute(const at::Tensor& hidden, const at::Tensor& embedded) const {
  DelayedScales* scales = context_.delayed_scales.get();
  at::Tensor output = in_layers(scales, [&] { return joined(hidden, embedded); });
  {
    const ModuleScope scope(context_.observer, kLayer);
    output = in_layers(scales, [&] { return layer_.compute(output); });
  }
  return normalized(final_norm_, "final_layernorm", output);
}

at::Tensor PredictionLayer::begin(const at::Tensor& hidden, const at::Tensor& embedded) const {
  const ModuleScope scope(context_.observer, name_);
  return joined(hidden, embedded);
}

at::Tensor PredictionLayer::end(const at::Tensor& output) const {
  const ModuleScope scope(context_.observer, name_);
  return normalized(final_norm_, "final_layernorm", output);
}

/// _concat_embeddings: all tensor ranks gather the whole projection, of which each goes on with its
/// part of the sequence, and holds the whole as long as this part.
at::Tensor PredictionLayer::joined(const at::Tensor& hidden, const at::Tensor& embedded) const {
  at::Tensor both = at::cat(
      {normalized(embedding_norm_, "enorm", embedded), normalized(hidden_norm_, "hnorm", hidden)},
      -1);
  const ModuleScope scope(context_.observer, "eh_proj");
  at::Tensor columns = projection_.forward(both);
  both.reset();
  const Group& group = context_.groups.tensor;
  if (!group) return columns;
  const at::Tensor whole = gather_columns(columns, group);
  return context_.sequence_parallel() ? scatter_to_sequence(whole, group) : whole;
}

at::Tensor PredictionLayer::normalized(const Norm& norm,
                                       const char* name,
                                       const at::Tensor& input) const {
  const ModuleScope scope(context_.observer, name);
  return norm.forward(input);
}

at::Tensor following(const at::Tensor& tokens) {
  at::Tensor rolled = at::roll(tokens, -1, 0);
  rolled.select(0, -1).fill_(0);
  return rolled;
}

at::Tensor count_right(const at::Tensor& scores,
                       const at::Tensor& labels,
                       const at::Tensor& mask,
                       const Group& group) {
  const c10::NoGradGuard no_grad;
  const at::Tensor is_right = predicted(scores, group).eq(labels).logical_and(mask);
  return is_right.sum();
}

}  // namespace models
