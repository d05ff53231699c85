#include "models/experts/grouped_linear.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "models/experts/grouped_linear_call.h"
#include "models/shard/host_work.h"
#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"
#include "models/shard/products.h"
#include "models/shard/quantized_parameter.h"

namespace models {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

/// out = left x right, one of the products of a call. TransformerEngine issues all of a call at
/// once, on four streams (transformer_engine/pytorch/module/grouped_linear.py,
/// multi_stream_cublas_gemm in common/gemm/cublaslt_gemm.cu).
void multiply_into(const GroupedLinearCall& call,
                   at::Tensor out,
                   const at::Tensor& left,
                   const at::Tensor& right,
                   const std::optional<at::Tensor>& bias = std::nullopt) {
  if (!call.issued_together) return call.products.multiply_into(out, left, right, bias);
  KernelScope kernel("te::grouped_mm");
  call.products.multiply_into(out, left, right, bias);
  kernel.moves({left, right}, out);
}

void add_to_main_gradient(const GroupedLinearCall& call,
                          Parameter& weight,
                          const at::Tensor& output_gradient,
                          const at::Tensor& input) {
  if (!call.issued_together) {
    return add_weight_gradient(call.products, weight, output_gradient, input);
  }
  KernelScope kernel("te::grouped_addmm");
  add_weight_gradient(call.products, weight, output_gradient, input);
  kernel.moves({weight.main_gradient, output_gradient.t(), input}, weight.main_gradient);
}

at::Tensor new_weight_gradient(const GroupedLinearCall& call,
                               const at::Tensor& output_gradient,
                               const at::Tensor& input) {
  if (!call.issued_together) return weight_gradient(call.products, output_gradient, input);
  return as_kernel("te::grouped_mm", {output_gradient.t(), input}, [&] {
    return weight_gradient(call.products, output_gradient, input);
  });
}

/// For autograd; undefined where the products add them to the main gradients.
variable_list weight_gradients(const KeptGroupedCall& kept_call,
                               const at::Tensor& output_gradient,
                               const at::Tensor& input) {
  const GroupedLinearCall& call = *kept_call.call;
  variable_list results(call.weights.size());
  if (!call.fused_gradient) {
    for_each_expert(kept_call.rows_of, [&](std::size_t expert, const auto& rows) {
      results[expert] = new_weight_gradient(call, rows(output_gradient), rows(input));
    });
    return results;
  }
  now_or_delayed(call, [kept_call, output_gradient, input] {
    for_each_expert(kept_call.rows_of, [&](std::size_t expert, const auto& rows) {
      Parameter& weight = *kept_call.call->weights[expert];
      add_to_main_gradient(*kept_call.call, weight, rows(output_gradient), rows(input));
      if (kept_call.call->transformer_engine) {
        kept_call.call->store->gradient_stand_in(weight.value);
      }
    });
  });
  return results;
}

struct GroupedLinearFunction : torch::autograd::Function<GroupedLinearFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            at::TensorList parameters,
                            const KeptGroupedCall& kept_call) {
    keep(context, kept_call);
    context->save_for_backward({input});
    const GroupedLinearCall& call = *kept_call.call;
    if (call.issued_together) use_workspaces(call, input.device());
    const std::size_t experts = call.weights.size();
    at::Tensor output = at::empty({input.size(0), parameters[0].size(0)}, input.options());
    for_each_expert(kept_call.rows_of, [&](std::size_t expert, const auto& rows) {
      const auto bias =
          call.biases.empty() ? std::nullopt : std::optional(parameters[experts + expert]);
      multiply_into(call, rows(output), rows(input), parameters[expert].t(), bias);
    });
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const KeptGroupedCall& kept_call = kept<KeptGroupedCall>(context);
    const GroupedLinearCall& call = *kept_call.call;
    const at::Tensor input = context->get_saved_variables()[0];
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor input_gradient = at::empty(input.sizes(), input.options());
    for_each_expert(kept_call.rows_of, [&](std::size_t expert, const auto& rows) {
      const at::Tensor weight = call.weights[expert]->value.detach();
      multiply_into(call, rows(input_gradient), rows(gradient), weight);
    });
    variable_list results{input_gradient};
    const variable_list of_weights = weight_gradients(kept_call, gradient, input);
    results.insert(results.end(), of_weights.begin(), of_weights.end());
    const variable_list of_biases = bias_gradients(kept_call, gradient);
    results.insert(results.end(), of_biases.begin(), of_biases.end());
    results.emplace_back();  // of the call
    return results;
  }
};

/// Functions of transformer_engine/pytorch/module.
const char* python_of(const ShardContext& context) {
  const bool is_grouped = context.plan.training.moe_grouped_gemm;
  return context.python_of_engine(is_grouped ? "_GroupedLinear" : "_Linear");
}

}  // namespace

std::vector<at::Tensor> bias_gradients(const KeptGroupedCall& kept_call,
                                       const at::Tensor& gradient) {
  std::vector<at::Tensor> gradients;
  if (kept_call.call->biases.empty()) return gradients;
  for_each_expert(kept_call.rows_of, [&](std::size_t, const auto& rows) {
    gradients.push_back(kept_call.call->products.bias_gradient(rows(gradient)));
  });
  return gradients;
}

void now_or_delayed(const GroupedLinearCall& call, std::function<void()> add) {
  if (!call.delayed) return add();
  call.delayed->add({.module = call.name, .run = std::move(add)});
}

void use_workspaces(const GroupedLinearCall& call, const at::Device& device) {
  if (call.issued_together) {
    call.buffers->use_grouped_product_workspaces(*call.plan, device);
  } else {
    call.buffers->use_transformer_engine_workspace(*call.plan, device);
  }
}

GroupedLinear::GroupedLinear(ShardContext& context,
                             ParameterStore& store,
                             const GroupedLinearSpec& spec) {
  const estimator::TrainingConfig& training = context.plan.training;
  std::vector<Parameter*> weights, biases;
  for (int64_t expert = 0; expert < spec.experts; ++expert) {
    const int64_t number = spec.first_expert + expert;
    weights.push_back(
        &store.add({.name = fmt::format("{}.{}.{}.weight", spec.name, number, spec.layer),
                    .full_shape = {spec.outputs, spec.inputs},
                    .sharded_dim = spec.sharded_dim,
                    .blocks = spec.output_blocks,
                    .expert = true}));
    if (estimator::keeps_weights_quantized(training)) {
      hold_quantized(*weights.back(), {context.plan, context.device_computes}, context.observer);
    }
    if (!spec.bias) continue;
    Parameter& bias =
        store.add({.name = fmt::format("{}.{}.{}.bias", spec.name, number, spec.layer),
                   .full_shape = {spec.outputs},
                   .initial_value = InitialValue::kZeros,
                   .expert = true});
    spec.caller_adds_bias ? left_to_caller_.push_back(&bias) : biases.push_back(&bias);
  }
  call_ = std::make_shared<const GroupedLinearCall>(GroupedLinearCall{
      .store = &store,
      .weights = std::move(weights),
      .biases = std::move(biases),
      .fused_gradient = context.fused_weight_gradient(),
      .transformer_engine = context.transformer_engine(),
      .issued_together = context.transformer_engine() && training.moe_grouped_gemm,
      .products = context.products(),
      .buffers = context.buffers,
      .plan = &context.plan,
      .quantized = make_quantized_experts(context, spec),
      .python = python_of(context),
      .delayed = context.transformer_engine() ? context.delayed_gradients : nullptr,
      .name = spec.name + "." + spec.layer});
}

at::Tensor GroupedLinear::forward(const at::Tensor& input,
                                  const std::vector<int64_t>& rows_of) const {
  std::vector<at::Tensor> parameters;
  for (const auto* all : {&call_->weights, &call_->biases}) {
    for (const Parameter* parameter : *all) parameters.push_back(parameter->value);
  }
  const KeptGroupedCall kept_call{.call = call_, .rows_of = rows_of};
  return as_python(call_->python, [&] {
    return call_->quantized
               ? quantized_grouped_linear(input, parameters, kept_call)
               : GroupedLinearFunction::apply(input, at::TensorList(parameters), kept_call);
  });
}

std::vector<at::Tensor> GroupedLinear::biases() const {
  std::vector<at::Tensor> values;
  for (const Parameter* bias : left_to_caller_) values.push_back(bias->value);
  return values;
}

}  // namespace models
