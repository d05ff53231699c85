#include "models/layers/norm.h"

#include <ATen/ops/layer_norm.h>
#include <ATen/ops/rms_norm.h>

namespace models {

Norm::Norm(ShardContext& context, ParameterStore& store, const std::string& name)
    : Norm(context, store, name, context.plan.model.hidden_size) {}

Norm::Norm(ShardContext& context, ParameterStore& store, const std::string& name, int64_t width)
    : Norm(context, store, name, Shape{.width = width, .is_partial = context.sequence_parallel()}) {
}

Norm Norm::of_heads(ShardContext& context, ParameterStore& store, const std::string& name) {
  return {context,
          store,
          name,
          Shape{.width = context.plan.model.kv_channels, .is_partial = context.tensor_size() > 1}};
}

Norm::Norm(ShardContext& context,
           ParameterStore& store,
           const std::string& name,
           const Shape& of_rows)
    : kind_(context.plan.model.normalization), epsilon_(context.plan.model.norm_epsilon) {
  const std::vector<int64_t> shape = {of_rows.width};
  const bool partial = of_rows.is_partial;
  weight_ = &store.add({.name = name + ".weight",
                        .full_shape = shape,
                        .initial_value = InitialValue::kOnes,
                        .sequence_partial = partial});
  if (kind_ == estimator::Normalization::kLayerNorm) {
    bias_ = &store.add({.name = name + ".bias",
                        .full_shape = shape,
                        .initial_value = InitialValue::kZeros,
                        .sequence_partial = partial});
  }
}

at::Tensor Norm::forward(const at::Tensor& input) const {
  const at::IntArrayRef shape = weight_->value.sizes();
  if (kind_ == estimator::Normalization::kRmsNorm) {
    return at::rms_norm(input, shape, weight_->value, epsilon_);
  }
  return at::layer_norm(input, shape, weight_->value, bias_->value, epsilon_);
}

}  // namespace models
