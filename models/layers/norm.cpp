#include "models/layers/norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/rsqrt.h>

#include <optional>

#include "models/shard/host_work.h"

namespace models {
namespace {

/// Its norms are operations of transformer_engine/pytorch/ops/fuser.py.
constexpr const char* kTransformerEngineNorm = "_OperationFuserAutogradFunction";

/// RMSNorm in torchtitan/models/norms.py (9dec370, until 3b39d7a of March 2025), LlamaRMSNorm in
/// transformers.
at::Tensor rms_norm_of_operators(const at::Tensor& input,
                                 const at::Tensor& weight,
                                 double epsilon) {
  const at::Tensor wide = input.to(at::kFloat);
  const at::Tensor squares = at::pow(wide, 2).mean(at::IntArrayRef{-1}, /*keepdim=*/true);
  return (wide * at::rsqrt(squares + epsilon)).type_as(input) * weight;
}

/// Olmo2RMSNorm in transformers; and GemmaRMSNorm, which multiplies by 1 + its weight.
at::Tensor rms_norm_in_fp32(const at::Tensor& input, const at::Tensor& weight, double epsilon) {
  const at::Tensor wide = input.to(at::kFloat);
  const at::Tensor squares = wide.pow(2).mean(at::IntArrayRef{-1}, /*keepdim=*/true);
  const at::Tensor normal = wide * at::rsqrt(squares + epsilon);
  return (weight.to(at::kFloat) * normal).to(input.scalar_type());
}

/// CohereLayerNorm in transformers.
at::Tensor layer_norm_of_operators(const at::Tensor& input,
                                   const at::Tensor& weight,
                                   double epsilon) {
  const at::Tensor wide = input.to(at::kFloat);
  const at::Tensor mean = wide.mean(at::IntArrayRef{-1}, /*keepdim=*/true);
  const at::Tensor variance = (wide - mean).pow(2).mean(at::IntArrayRef{-1}, /*keepdim=*/true);
  const at::Tensor normal = (wide - mean) * at::rsqrt(variance + epsilon);
  return (weight.to(at::kFloat) * normal).to(input.scalar_type());
}

std::optional<at::Tensor> value_of(const Parameter* parameter) {
  return parameter == nullptr ? std::nullopt : std::optional<at::Tensor>(parameter->value);
}

}  // namespace

Norm::Norm(ShardContext& context, ParameterStore& store, const std::string& name)
    : Norm(context, store, name, context.plan.model.hidden_size) {}

Norm::Norm(ShardContext& context, ParameterStore& store, const std::string& name, int64_t width)
    : Norm(context, store, name, Shape{.width = width, .is_partial = context.sequence_parallel()}) {
}

Norm Norm::of_heads(ShardContext& context,
                    ParameterStore& store,
                    const std::string& name,
                    int64_t width) {
  return {context,
          store,
          name,
          Shape{.width = width,
                .is_partial = context.tensor_size() > 1,
                .at_mark = context.framework().norms_last}};
}

Norm::Norm(ShardContext& context,
           ParameterStore& store,
           const std::string& name,
           const Shape& of_rows)
    : kind_(context.plan.model.normalization),
      epsilon_(context.plan.model.norm_epsilon),
      width_(of_rows.width),
      of_operators_(context.framework().norm_of_operators),
      of_dtensors_(context.has_dtensors()),
      weight_in_fp32_(context.plan.model.norm_weight_in_fp32),
      fused_(context.plan.training.rms_norm_fusion && !of_operators_),
      modules_(context.modules),
      python_(context.python_of_engine(kTransformerEngineNorm)),
      scales_(context.delayed_scales) {
  if (!context.plan.model.norms_have_weights()) return;
  const std::vector<int64_t> shape = {of_rows.width};
  const bool partial = of_rows.is_partial;
  weight_ = &store.add({.name = name + ".weight",
                        .full_shape = shape,
                        .initial_value = InitialValue::kOnes,
                        .sequence_partial = partial,
                        .at_mark = of_rows.at_mark});
  if (context.plan.model.norms_have_biases()) {
    bias_ = &store.add({.name = name + ".bias",
                        .full_shape = shape,
                        .initial_value = InitialValue::kZeros,
                        .sequence_partial = partial,
                        .at_mark = of_rows.at_mark});
  }
}

/// TransformerEngine's operations count as modules with scales, also outside of its autocast
/// (forward() of _OperationFuserAutogradFunction).
at::Tensor Norm::agreed(const at::Tensor& input) const {
  const bool has_backward = input.requires_grad() || (weight_ != nullptr && weight_->trained);
  const bool agrees = scales_ && has_backward && scales_->comes_first(/*leaves_it=*/false);
  return agrees ? agreed_on_after(input, scales_) : input;
}

at::Tensor Norm::forward(const at::Tensor& input) const {
  const auto computed = [this](const at::Tensor& in) {
    return as_python(python_, [&] { return compute(agreed(in)); });
  };
  if (weight_ == nullptr) return computed(input);
  ParameterList parameters = {weight_};
  if (bias_ != nullptr) parameters.push_back(bias_);
  return in_module(modules_, weight_, parameters, input, computed);
}

at::Tensor Norm::compute(const at::Tensor& input) const {
  if (kind_ == estimator::Normalization::kLayerNorm) return layer_norm(input);
  if (of_dtensors_) dispatch_on_host(1);  // the kernel's own operator, for this rank's part
  if (fused_) return at::rms_norm(input, {width_}, weight_->value, epsilon_);
  return weight_in_fp32_ ? rms_norm_in_fp32(input, weight_->value, epsilon_)
                         : rms_norm_of_operators(input, weight_->value, epsilon_);
}

/// OlmoLayerNorm in transformers, which has no parameters, casts its input.
at::Tensor Norm::layer_norm(const at::Tensor& input) const {
  if (of_operators_ && weight_ != nullptr && bias_ == nullptr) {
    return layer_norm_of_operators(input, weight_->value, epsilon_);
  }
  const bool is_cast = of_operators_ && weight_ == nullptr;
  const at::Tensor read = is_cast ? input.to(at::kFloat) : input;
  return at::layer_norm(read, {width_}, value_of(weight_), value_of(bias_), epsilon_)
      .to(input.scalar_type());
}

}  // namespace models
