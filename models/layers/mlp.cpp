#include "models/layers/mlp.h"

#include <ATen/TensorOperators.h>

#include "models/layers/activation.h"

namespace models {
namespace {

using enum estimator::RecomputeModule;
using estimator::AdapterTarget;

/// Of the first product, which has both halves of a gated MLP where products are not separate.
AdapterTarget first_target(const ShardContext& context) {
  return context.framework().separate_products ? AdapterTarget::kUp : AdapterTarget::kFirst;
}

std::vector<ColumnParallelLinear> make_first(ShardContext& context,
                                             ParameterStore& store,
                                             const std::string& name,
                                             int64_t width,
                                             MlpInput input) {
  const bool alone = input == MlpInput::kOfItsNorm;
  const estimator::ModelConfig& model = context.plan.model;
  const bool gated = is_gated(model.activation);
  LinearSpec spec{.name = name + ".linear_fc1",
                  .inputs = model.hidden_size,
                  .outputs = width * (gated ? 2 : 1),
                  .bias = model.has_mlp_bias(),
                  .caller_adds_bias = activation_adds_bias(context),
                  .output_blocks = gated ? 2 : 1,
                  .after_norm = alone,
                  .input_is_kept = !alone && !recomputes(context.plan, kSharedExperts),
                  .at_mark = context.framework().norms_last,
                  .target = first_target(context)};
  if (!gated || !context.framework().separate_products) return {{context, store, spec}};
  const auto half = [&](const std::string& part, AdapterTarget target, int64_t first) {
    return LinearSpec{
        .name = name + "." + part,
        .inputs = spec.inputs,
        .outputs = width,
        .bias = spec.bias,
        .whole_input = true,
        .at_mark = context.framework().norms_last,
        .packed = PackedRows{.name = spec.name + ".weight", .parts = 2, .first = first},
        .target = target};
  };
  return {{context, store, half("gate", AdapterTarget::kGate, 0)},
          {context, store, half("up", AdapterTarget::kUp, 1)}};
}

}  // namespace

Mlp::Mlp(ShardContext& context,
         ParameterStore& store,
         const std::string& name,
         int64_t width,
         MlpInput input)
    : context_(context),
      scope_(name.substr(name.rfind('.') + 1)),
      sums_apart_(context.recomputes_late() && !context.plan.model.parallel_residual),
      first_(make_first(context, store, name, width, input)),
      second_(context,
              store,
              {.name = name + ".linear_fc2",
               .inputs = width,
               .outputs = context.plan.model.hidden_size,
               .bias = context.plan.model.has_mlp_bias(),
               .caller_sums = context.plan.model.parallel_residual || sums_apart_,
               .at_mark = context.framework().norms_last,
               .target = AdapterTarget::kDown}) {}

at::Tensor Mlp::begin(at::Tensor input, const Rest& rest) const {
  ModuleScope scope(context_.observer, scope_);
  const at::Tensor activated =
      first_.size() > 1 ? separately_gated(input) : hidden(std::move(input));
  ModuleScope second(context_.observer, "linear_fc2");
  at::Tensor product = second_.forward(activated);
  if (rest) rest(product);
  return product;
}

at::Tensor Mlp::finish(const at::Tensor& begun) const {
  const Group& group = context_.groups.tensor;
  if (!sums_apart_ || !group) return begun;
  ModuleScope scope(context_.observer, scope_);
  ModuleScope second(context_.observer, "linear_fc2");
  return context_.sequence_parallel() ? reduce_scatter_to_sequence(begun, group)
                                      : reduce_from_ranks(begun, group);
}

at::Tensor Mlp::hidden(at::Tensor input) const {
  const at::Tensor product = [&] {
    ModuleScope first(context_.observer, "linear_fc1");
    return first_[0].forward(input);
  }();
  input = at::Tensor();
  ModuleScope activation(context_.observer, "activation");
  const at::Tensor bias = first_[0].bias();
  return bias.defined() ? activate_biased(product, bias, context_) : activate(product, context_);
}

at::Tensor Mlp::separately_gated(const at::Tensor& input) const {
  const at::Tensor whole = whole_input(context_, input);
  const auto product = [&](const ColumnParallelLinear& layer) {
    ModuleScope first(context_.observer, "linear_fc1");
    return layer.forward(whole);
  };
  at::Tensor gate = product(first_[0]);
  {
    ModuleScope activation(context_.observer, "activation");
    gate = activate_gate(gate, context_.plan.model.activation);
  }
  const at::Tensor up = product(first_[1]);
  ModuleScope activation(context_.observer, "activation");
  return gate * up;
}

}  // namespace models
