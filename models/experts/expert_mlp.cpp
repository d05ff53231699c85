#include "models/experts/expert_mlp.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "estimator/plan/frameworks.h"
#include "models/experts/expert_padding.h"
#include "models/experts/fused_experts.h"
#include "models/layers/activation.h"
#include "models/layers/recompute.h"
#include "models/shard/host_work.h"

namespace models {

using estimator::GraphModule;

namespace {

/// Experts of this rank, counted from its first one.
struct Span {
  int64_t first, count;
};

/// Either layer of experts.
GroupedLinearSpec spec_of(const ShardContext& context,
                          const std::string& name,
                          const Span& span,
                          bool first) {
  const estimator::ModelConfig& model = context.plan.model;
  const int64_t own = context.plan.experts_of_rank();
  const int64_t blocks = is_gated(model.activation) ? 2 : 1;
  GroupedLinearSpec spec{.name = name + ".experts",
                         .layer = first ? "linear_fc1" : "linear_fc2",
                         .first_expert = context.coordinate.expert * own + span.first,
                         .experts = span.count,
                         .inputs = model.hidden_size,
                         .outputs = model.moe_ffn_hidden_size * blocks,
                         .sharded_dim = 0,
                         .output_blocks = blocks,
                         .bias = model.has_mlp_bias()};
  if (first) return spec;
  spec.inputs = model.moe_ffn_hidden_size;
  spec.outputs = model.hidden_size;
  spec.sharded_dim = 1;
  spec.output_blocks = 1;
  spec.caller_adds_bias = spec.bias;
  spec.input_is_computed_again =
      estimator::recomputes(context.plan, estimator::RecomputeModule::kExpertActivation);
  return spec;
}

/// Each expert's bias times the weights of its rows (_apply_bias of TEGroupedMLP in
/// megatron/core/transformer/moe/experts.py).
at::Tensor with_biases(const at::Tensor& rows,
                       const std::vector<at::Tensor>& biases,
                       const std::vector<int64_t>& rows_of,
                       const at::Tensor& weights) {
  if (biases.empty()) return rows;
  const auto of_experts = rows.split_with_sizes(rows_of);
  const auto weights_of = weights.split_with_sizes(rows_of);
  std::vector<at::Tensor> sums;
  for (std::size_t expert = 0; expert < biases.size(); ++expert) {
    sums.push_back(of_experts[expert] + biases[expert] * weights_of[expert]);
  }
  return at::cat(sums).to(rows.scalar_type());
}

/// One after another in SequentialMLP (megatron/core/transformer/moe/experts.py).
std::vector<Span> spans_of(const estimator::Plan& plan) {
  if (plan.training.moe_grouped_gemm) return {{0, plan.experts_of_rank()}};
  std::vector<Span> spans;
  for (int64_t expert = 0; expert < plan.experts_of_rank(); ++expert) spans.push_back({expert, 1});
  return spans;
}

}  // namespace

ExpertMlp::ExpertMlp(ShardContext& context,
                     ParameterStore& store,
                     const std::string& name,
                     std::shared_ptr<const TokenDispatcher> dispatcher)
    : context_(context),
      dispatcher_(std::move(dispatcher)),
      router_(context, store, name + ".router") {
  for (const Span& span : spans_of(context.plan)) {
    const auto rows_of = dispatcher_->rows_of_own_experts().begin() + span.first;
    GroupedLinear first(context, store, spec_of(context, name, span, true));
    experts_.push_back({.rows_of = padded_rows(context.plan, {rows_of, rows_of + span.count}),
                        .first = std::move(first),
                        .second = {context, store, spec_of(context, name, span, false)}});
  }
  const int64_t width = context.plan.model.moe_shared_expert_intermediate_size;
  if (width > 0) {
    shared_.emplace(context, store, name + ".shared_experts", width, MlpInput::kOfRouterToo);
  }
}

at::Tensor ExpertMlp::run_together(const Layers& layers,
                                   const at::Tensor& rows,
                                   const at::Tensor& weights) const {
  Observer& observer = context_.observer;
  at::Tensor hidden = [&] {
    const ModuleScope first(observer, "linear_fc1");
    return layers.first.forward(rows, layers.rows_of);
  }();
  const auto activated = [this, &observer](const torch::autograd::variable_list& inputs) {
    const ModuleScope activation(observer, "activation");
    return torch::autograd::variable_list{activate_weighted(inputs[0], inputs[1], context_)};
  };
  const bool discards =
      estimator::recomputes(context_.plan, estimator::RecomputeModule::kExpertActivation);
  DiscardedOutputs discarded;
  hidden = discards ? discarded.run(activated, {hidden, weights}, observer)[0]
                    : activated({hidden, weights})[0];
  const ModuleScope second(observer, "linear_fc2");
  at::Tensor output = layers.second.forward(hidden, layers.rows_of);
  if (discards) discarded.discard(output);
  return with_biases(output, layers.second.biases(), layers.rows_of, weights);
}

at::Tensor ExpertMlp::run_experts(const DispatchedTokens& dispatched) const {
  const ModuleScope scope(context_.observer, "experts");
  const std::vector<int64_t>& rows_of = dispatcher_->rows_of_own_experts();
  const bool fuses = context_.plan.training.use_transformer_engine_op_fuser;
  if (fuses && !context_.device_computes) return run_fused(dispatched);
  if (context_.plan.training.moe_grouped_gemm) {
    const Layers& all = experts_.front();
    const at::Tensor rows = with_rows(dispatched.rows, rows_of, all.rows_of);
    const at::Tensor weights = with_rows(dispatched.weights, rows_of, all.rows_of);
    return as_python(context_.python_of_engine("TEGroupedMLP"), [&] {
      return with_rows(run_together(all, rows, weights), all.rows_of, rows_of);
    });
  }
  if (experts_.size() == 1) {
    return run_alone(experts_.front(), dispatched.rows, dispatched.weights);
  }
  const auto rows = dispatched.rows.split_with_sizes(rows_of);
  const auto weights = dispatched.weights.split_with_sizes(rows_of);
  std::vector<at::Tensor> outputs;
  for (std::size_t expert = 0; expert < experts_.size(); ++expert) {
    outputs.push_back(run_alone(experts_[expert], rows[expert], weights[expert]));
  }
  return at::cat(outputs);
}

at::Tensor ExpertMlp::run_fused(const DispatchedTokens& dispatched) const {
  const Layers& all = experts_.front();
  return as_python(context_.python_of_engine("TEGroupedMLP"), [&] {
    return run_fused_experts(dispatched.rows,
                             dispatched.weights,
                             {.first = all.first.call(),
                              .second = all.second.call(),
                              .rows_of = all.rows_of,
                              .stash = context_.stash});
  });
}

at::Tensor ExpertMlp::run_alone(const Layers& layers,
                                const at::Tensor& rows,
                                const at::Tensor& weights) const {
  if (!estimator::quantizes(context_.plan.training)) {
    return run_together(layers, rows, weights);
  }
  const int64_t count = layers.rows_of[0];
  return run_together(layers, with_zeros(rows, count), with_zeros(weights, count))
      .narrow(0, 0, rows.size(0));
}

at::Tensor ExpertMlp::shared_experts(const at::Tensor& input) const {
  if (!estimator::recomputes(context_.plan, estimator::RecomputeModule::kSharedExperts)) {
    return shared_->forward(input);
  }
  const auto segment = [this](const torch::autograd::variable_list& inputs) {
    return shared_->forward(inputs[0]);
  };
  return checkpoint(segment, {input}, context_.observer, {.scales = context_.delayed_scales});
}

/// Where a CUDA graph ends with the router, or with what is prepared, `shared` is one of its
/// outputs, too.
DispatchedTokens ExpertMlp::prepare(const at::Tensor& tokens, at::Tensor& shared) const {
  const auto end = [&](GraphModule module, std::vector<at::Tensor> outputs) {
    if (shared.defined()) outputs.push_back(shared);
    outputs = context_.graphs->end(module, /*has_experts=*/true, std::move(outputs));
    if (shared.defined()) shared = outputs.back();
    return outputs;
  };
  RouterOutput routed;
  as_python(context_.python_of_engine("TopKRouter"), [&] {
    routed = router_.forward(tokens, dispatcher_->chosen());
    return routed.weights;
  });
  const auto of_router = end(GraphModule::kMoeRouter, {tokens, routed.weights});
  routed.weights = of_router[1];
  DispatchedTokens prepared = dispatcher_->prepare(of_router[0], routed, *last_);
  const auto ready = end(GraphModule::kMoePreprocess, {prepared.rows, prepared.weights});
  prepared.rows = ready[0];
  prepared.weights = ready[1];
  return prepared;
}

at::Tensor ExpertMlp::forward(at::Tensor input) const {
  const ModuleScope scope(context_.observer, "mlp");
  return as_python(context_.python_of_engine("MoELayer"), [&] { return with_experts(input); });
}

at::Tensor ExpertMlp::with_experts(const at::Tensor& input) const {
  Prepared prepared = begin_tokens(input);
  DispatchedTokens dispatched = send_tokens(std::move(prepared.tokens));
  at::Tensor rows = run_tokens(dispatched);
  return end_tokens(std::move(rows), dispatched, prepared.shared, input.sizes());
}

ExpertMlp::Prepared ExpertMlp::begin_tokens(const at::Tensor& input) const {
  Prepared prepared;
  if (shared_) prepared.shared = shared_experts(input);
  prepared.tokens = prepare(input.reshape({-1, input.size(-1)}), prepared.shared);
  return prepared;
}

DispatchedTokens ExpertMlp::send_tokens(DispatchedTokens prepared) const {
  return dispatcher_->dispatch(std::move(prepared), *last_);
}

at::Tensor ExpertMlp::run_tokens(DispatchedTokens& arrived) const {
  arrived = dispatcher_->arrange(std::move(arrived), *last_);
  at::Tensor rows = dispatcher_->collect(run_experts(arrived), arrived);
  arrived.rows = at::Tensor();  // the products keep what they need
  return rows;
}

at::Tensor ExpertMlp::end_tokens(at::Tensor rows,
                                 const DispatchedTokens& tokens,
                                 const at::Tensor& shared,
                                 at::IntArrayRef shape) const {
  rows = dispatcher_->send_back(rows);
  const at::Tensor combined = dispatcher_->combine(rows, tokens).view(shape);
  return shared.defined() ? combined + shared : combined;
}

}  // namespace models
