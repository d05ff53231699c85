#include "models/mlp.h"

#include "models/activation.h"

namespace models {

Mlp::Mlp(ShardContext& context, ParameterStore& store, const std::string& name, int64_t width)
    : context_(context),
      first_(context,
             store,
             {.name = name + ".first",
              .inputs = context.plan.model.hidden_size,
              .outputs = width * (is_gated(context.plan.model.activation) ? 2 : 1),
              .bias = context.plan.model.add_bias_linear,
              .output_blocks = is_gated(context.plan.model.activation) ? 2 : 1}),
      second_(context,
              store,
              {.name = name + ".second",
               .inputs = width,
               .outputs = context.plan.model.hidden_size,
               .bias = context.plan.model.add_bias_linear}) {}

at::Tensor Mlp::forward(const at::Tensor& input) const {
  ModuleScope scope(context_.observer, "mlp");
  at::Tensor hidden = [&] {
    ModuleScope first(context_.observer, "first");
    return first_.forward(input);
  }();
  hidden = [&] {
    ModuleScope activation(context_.observer, "activation");
    return activate(hidden, context_);
  }();
  ModuleScope second(context_.observer, "second");
  return second_.forward(hidden);
}

}  // namespace models
