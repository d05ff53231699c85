#include "models/experts/expert_mlp.h"

#include <ATen/TensorOperators.h>

#include "models/layers/activation.h"

namespace models {
namespace {

/// Either layer of this rank's experts.
GroupedLinearSpec spec_of(const ShardContext& context, const std::string& name, bool first) {
  const estimator::ModelConfig& model = context.plan.model;
  const int64_t own = context.plan.experts_of_rank();
  const int64_t blocks = is_gated(model.activation) ? 2 : 1;
  GroupedLinearSpec spec{.name = name + ".experts",
                         .layer = first ? "linear_fc1" : "linear_fc2",
                         .first_expert = context.coordinate.expert * own,
                         .experts = own,
                         .inputs = model.hidden_size,
                         .outputs = model.moe_ffn_hidden_size * blocks,
                         .sharded_dim = 0,
                         .output_blocks = blocks};
  if (first) return spec;
  spec.inputs = model.moe_ffn_hidden_size;
  spec.outputs = model.hidden_size;
  spec.sharded_dim = 1;
  spec.output_blocks = 1;
  return spec;
}

}  // namespace

ExpertMlp::ExpertMlp(ShardContext& context,
                     ParameterStore& store,
                     const std::string& name,
                     std::shared_ptr<const TokenDispatcher> dispatcher)
    : context_(context),
      dispatcher_(std::move(dispatcher)),
      router_(context, store, name + ".router"),
      first_(context, store, spec_of(context, name, true)),
      second_(context, store, spec_of(context, name, false)) {
  const int64_t width = context.plan.model.moe_shared_expert_intermediate_size;
  if (width > 0) shared_.emplace(context, store, name + ".shared_experts", width);
}

at::Tensor ExpertMlp::run_experts(const DispatchedTokens& dispatched) const {
  Observer& observer = context_.observer;
  const ModuleScope scope(observer, "experts");
  const std::vector<int64_t>& rows_of = dispatcher_->rows_of_own_experts();
  at::Tensor hidden = [&] {
    const ModuleScope first(observer, "linear_fc1");
    return first_.forward(dispatched.rows, rows_of);
  }();
  hidden = [&] {
    const ModuleScope activation(observer, "activation");
    return activate_weighted(hidden, dispatched.weights, context_);
  }();
  const ModuleScope second(observer, "linear_fc2");
  return second_.forward(hidden, rows_of);
}

at::Tensor ExpertMlp::forward(const at::Tensor& input) const {
  const ModuleScope scope(context_.observer, "mlp");
  at::Tensor shared;
  if (shared_) shared = shared_->forward(input);
  const at::Tensor tokens = input.reshape({-1, input.size(-1)});
  const RouterOutput routed = router_.forward(tokens, dispatcher_->chosen());
  last_->weights = routed.weights;
  last_->map = routed.map;
  DispatchedTokens dispatched = dispatcher_->dispatch(tokens, routed);
  last_->row_map = dispatched.row_map;
  at::Tensor rows = dispatcher_->collect(run_experts(dispatched));
  dispatched.rows = at::Tensor();  // the products keep what they need
  rows = dispatcher_->send_back(rows);
  const at::Tensor combined = dispatcher_->combine(rows, dispatched).view(input.sizes());
  return shared.defined() ? combined + shared : combined;
}

}  // namespace models
