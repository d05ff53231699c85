#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/experts/quantized_experts.h"
#include "models/shard/delayed_scales.h"
#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"

namespace models {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

using Operands = std::vector<QuantizedOperand>;
using OperandOf = QuantizedOperand (Quantized::*)() const;

Operands operands(const std::vector<Quantized>& all, OperandOf of) {
  Operands result;
  for (const Quantized& one : all) result.push_back((one.*of)());
  return result;
}

/// Null for an expert that runs by itself: its products are recorded as they are.
const char* kernel_of(const GroupedLinearCall& call) {
  return call.issued_together ? "te::grouped_scaled_mm" : nullptr;
}

void multiply(const GroupedLinearCall& call,
              at::Tensor out,
              const QuantizedOperand& left,
              const QuantizedOperand& right) {
  const QuantizedProducts& products = call.quantized->products;
  KernelScope kernel(kernel_of(call));
  products.multiply_into(out, left, right);
  kernel.moves({left.matrix, right.matrix, left.scale, right.scale}, out);
}

void multiply_and_add(const GroupedLinearCall& call,
                      at::Tensor& sum,
                      const QuantizedOperand& left,
                      const QuantizedOperand& right) {
  KernelScope kernel(kernel_of(call));
  call.quantized->products.multiply_and_add(sum, left, right);
  kernel.moves({left.matrix, right.matrix, left.scale, right.scale, sum}, sum);
}

std::vector<Quantized> quantize(const KeptGroupedCall& kept_call,
                                const at::Tensor& rows,
                                QuantizedRole role,
                                QuantizedUse use) {
  const QuantizedProducts& products = kept_call.call->quantized->products;
  if (!kept_call.call->issued_together) return {products.quantize(rows, role, use)};
  return products.quantize_parts(rows, kept_call.rows_of, role, use);
}

struct QuantizedGroupedFunction : torch::autograd::Function<QuantizedGroupedFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            at::TensorList parameters,
                            const KeptGroupedCall& kept_call) {
    keep(context, kept_call);
    const GroupedLinearCall& call = *kept_call.call;
    const QuantizedExperts& experts = *call.quantized;
    const QuantizedProducts& products = experts.products;
    use_workspaces(call, input.device());
    const std::vector<Quantized> inputs =
        quantize(kept_call, input, QuantizedRole::kInput, {.columns = !experts.keeps_input});
    const std::vector<Quantized> quantized = weights_of(call, use_in_forward(input));
    at::Tensor output = at::empty({input.size(0), parameters[0].size(0)}, input.options());
    const Operands right = products.ready(operands(quantized, &Quantized::along_rows));
    const Operands left = products.ready(operands(inputs, &Quantized::along_rows));
    for_each_expert(kept_call.rows_of, [&](std::size_t expert, const auto& rows) {
      multiply(call, rows(output), left[expert], right[expert].transposed());
      if (products.computes() && !call.biases.empty()) {
        rows(output).add_(parameters[call.weights.size() + expert]);  // in the product
      }
    });
    context->save_for_backward(experts.keeps_input ? variable_list{input}
                                                   : kept_tensors(inputs, products));
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const KeptGroupedCall& kept_call = kept<KeptGroupedCall>(context);
    const at::Tensor gradient = gradients[0].contiguous();
    // The kernel that quantizes sums, too (bgrad_quantize).
    const variable_list of_biases = bias_gradients(kept_call, gradient);
    const std::vector<Quantized> quantized =
        quantize(kept_call, gradient, QuantizedRole::kGradient, QuantizedUse());
    variable_list results{input_gradient(kept_call, gradient, quantized)};
    const variable_list of_weights =
        weight_gradients(kept_call, quantized, context->get_saved_variables(), gradient.options());
    results.insert(results.end(), of_weights.begin(), of_weights.end());
    results.insert(results.end(), of_biases.begin(), of_biases.end());
    results.emplace_back();  // of the call
    if (kept_call.agrees) kept_call.call->quantized->scales.agree_after_backward();
    return results;
  }

 private:
  /// What products that sum along the columns read: a matrix, a scale and the largest element (in 4
  /// bits) for each expert.
  static variable_list kept_tensors(const std::vector<Quantized>& inputs,
                                    const QuantizedProducts& products) {
    variable_list tensors;
    for (const Quantized& input : inputs) {
      const bool columns = products.keeps_columns();
      tensors.push_back(columns ? input.by_columns : input.by_rows);
      tensors.push_back(columns ? input.scale_of_columns : input.scale_of_rows);
      tensors.push_back(columns ? input.largest_of_columns : input.largest_of_rows);
    }
    return tensors;
  }

  static std::vector<Quantized> kept_inputs(const KeptGroupedCall& kept_call,
                                            const variable_list& saved) {
    const QuantizedExperts& experts = *kept_call.call->quantized;
    const QuantizedProducts& products = experts.products;
    if (experts.keeps_input) {
      return quantize(
          kept_call, saved[0], QuantizedRole::kInput, {.rows = !products.gathers_columns()});
    }
    std::vector<Quantized> inputs(kept_call.rows_of.size());
    const bool columns = products.keeps_columns();
    for (std::size_t expert = 0; expert < inputs.size(); ++expert) {
      Quantized& input = inputs[expert];
      const std::size_t first = 3 * expert;
      (columns ? input.by_columns : input.by_rows) = saved[first];
      (columns ? input.scale_of_columns : input.scale_of_rows) = saved[first + 1];
      (columns ? input.largest_of_columns : input.largest_of_rows) = saved[first + 2];
    }
    return inputs;
  }

  static at::Tensor input_gradient(const KeptGroupedCall& kept_call,
                                   const at::Tensor& gradient,
                                   const std::vector<Quantized>& quantized) {
    const GroupedLinearCall& call = *kept_call.call;
    const QuantizedProducts& products = call.quantized->products;
    at::Tensor result =
        at::empty({gradient.size(0), call.weights[0]->value.size(1)}, gradient.options());
    const Operands right =
        products.ready(operands(weights_of(call, WeightUse::kBackward), &Quantized::along_columns));
    const Operands left = products.ready(operands(quantized, &Quantized::along_rows));
    for_each_expert(kept_call.rows_of, [&](std::size_t expert, const auto& rows) {
      multiply(call, rows(result), left[expert], right[expert]);
    });
    return result;
  }

  /// For autograd; undefined where the products have added them to the main gradients.
  static variable_list weight_gradients(const KeptGroupedCall& kept_call,
                                        const std::vector<Quantized>& gradients,
                                        const variable_list& saved,
                                        const at::TensorOptions& options) {
    const GroupedLinearCall& call = *kept_call.call;
    if (!call.fused_gradient) return new_weight_gradients(kept_call, gradients, saved, options);
    now_or_delayed(
        call, [kept_call, gradients, saved] { add_weight_gradients(kept_call, gradients, saved); });
    return variable_list(call.weights.size());
  }

  /// What the weights' gradients are products of: output gradients and inputs.
  static std::pair<Operands, Operands> factors(const KeptGroupedCall& kept_call,
                                               const std::vector<Quantized>& gradients,
                                               const variable_list& saved) {
    const QuantizedProducts& products = kept_call.call->quantized->products;
    Operands right =
        products.ready(operands(kept_inputs(kept_call, saved), &Quantized::along_columns));
    return {products.ready(operands(gradients, &Quantized::along_columns)), std::move(right)};
  }

  static variable_list new_weight_gradients(const KeptGroupedCall& kept_call,
                                            const std::vector<Quantized>& gradients,
                                            const variable_list& saved,
                                            const at::TensorOptions& options) {
    const GroupedLinearCall& call = *kept_call.call;
    const at::Tensor& weight = call.weights[0]->value;
    const at::Tensor all =
        at::empty({std::ssize(call.weights), weight.size(0), weight.size(1)}, options);
    const auto [left, right] = factors(kept_call, gradients, saved);
    variable_list results;
    for (std::size_t expert = 0; expert < call.weights.size(); ++expert) {
      results.push_back(all[static_cast<int64_t>(expert)]);
      multiply(call, results.back(), left[expert].transposed(), right[expert]);
    }
    return results;
  }

  static void add_weight_gradients(const KeptGroupedCall& kept_call,
                                   const std::vector<Quantized>& gradients,
                                   const variable_list& saved) {
    const GroupedLinearCall& call = *kept_call.call;
    const auto [left, right] = factors(kept_call, gradients, saved);
    for (std::size_t expert = 0; expert < call.weights.size(); ++expert) {
      Parameter& weight = *call.weights[expert];
      multiply_and_add(call, weight.main_gradient, left[expert].transposed(), right[expert]);
      weight.contribution_added();
      call.store->gradient_stand_in(weight.value);
    }
  }
};

}  // namespace

std::vector<Quantized> weights_of(const GroupedLinearCall& call, WeightUse use) {
  QuantizedExperts& experts = *call.quantized;
  std::vector<Quantized> weights;
  for (std::size_t expert = 0; expert < call.weights.size(); ++expert) {
    weights.push_back(experts.copies[expert].of(
        *call.weights[expert], call.store->iteration(), experts.products, experts.observer, use));
  }
  return weights;
}

std::shared_ptr<QuantizedExperts> make_quantized_experts(const ShardContext& context,
                                                         const GroupedLinearSpec& spec) {
  const estimator::Plan& plan = context.plan;
  if (!estimator::quantizes(plan.training)) return nullptr;
  return std::make_shared<QuantizedExperts>(
      QuantizedExperts{.products = {plan, context.device_computes},
                       .keeps_input = spec.input_is_computed_again,
                       .observer = context.observer,
                       .copies = std::vector<QuantizedWeight>(spec.experts),
                       .scales = {context.delayed_scales, spec.experts}});
}

at::Tensor quantized_grouped_linear(const at::Tensor& input,
                                    const std::vector<at::Tensor>& parameters,
                                    const KeptGroupedCall& kept_call) {
  ScaledModule& scales = kept_call.call->quantized->scales;
  scales.begin();
  KeptGroupedCall own = kept_call;
  own.agrees = scales.comes_first(/*leaves_it=*/!kept_call.call->issued_together);
  at::Tensor output = QuantizedGroupedFunction::apply(input, at::TensorList(parameters), own);
  scales.end();
  return output;
}

}  // namespace models
