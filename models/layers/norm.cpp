#include "models/layers/norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/rsqrt.h>

namespace models {
namespace {

/// RMSNorm in torchtitan/models/norms.py (9dec370, until 3b39d7a of March 2025), LlamaRMSNorm in
/// transformers.
at::Tensor rms_norm_of_operators(const at::Tensor& input,
                                 const at::Tensor& weight,
                                 double epsilon) {
  const at::Tensor wide = input.to(at::kFloat);
  const at::Tensor squares = at::pow(wide, 2).mean(at::IntArrayRef{-1}, /*keepdim=*/true);
  return (wide * at::rsqrt(squares + epsilon)).type_as(input) * weight;
}

}  // namespace

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
    : kind_(context.plan.model.normalization),
      epsilon_(context.plan.model.norm_epsilon),
      fused_(context.plan.training.rms_norm_fusion && !context.framework().norm_of_operators),
      modules_(context.modules) {
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
  ParameterList parameters = {weight_};
  if (bias_ != nullptr) parameters.push_back(bias_);
  return in_module(
      modules_, weight_, parameters, input, [this](const at::Tensor& in) { return compute(in); });
}

at::Tensor Norm::compute(const at::Tensor& input) const {
  const at::IntArrayRef shape = weight_->value.sizes();
  if (kind_ == estimator::Normalization::kRmsNorm) {
    return fused_ ? at::rms_norm(input, shape, weight_->value, epsilon_)
                  : rms_norm_of_operators(input, weight_->value, epsilon_);
  }
  return at::layer_norm(input, shape, weight_->value, bias_->value, epsilon_);
}

}  // namespace models
