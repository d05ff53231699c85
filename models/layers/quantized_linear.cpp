#include "models/layers/quantized_linear.h"

#include "estimator/plan/quantization.h"
#include "models/layers/linear_call.h"
#include "models/layers/sequence_mappings.h"
#include "models/shard/kept_value.h"
#include "models/shard/quantized_parameter.h"
#include "models/shard/unbacked_tensor.h"

namespace models {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

QuantizedLayer::QuantizedLayer(const ShardContext& context, const LinearSpec& spec, bool is_row)
    : products(context.plan, context.device_computes),
      row_parallel(is_row),
      keeps_input(spec.input_is_kept && products.finds_scale()),
      after_norm(spec.after_norm),
      frees_input(spec.after_norm && !spec.adapter_reads),
      keeps_rows(spec.after_norm && estimator::quantization_of(context.plan.training).bits == 4),
      agreeing(is_row || !context.sequence_parallel() ? nullptr : context.groups.tensor),
      scales(context.delayed_scales, /*products=*/1),
      observer_(context.observer) {}

const Quantized& QuantizedLayer::weight(const LinearCall& call, WeightUse use) {
  return weight_.of(*call.weight, call.store->iteration(), products, observer_, use);
}

bool is_quantized(const ShardContext& context, const LinearSpec& spec) {
  return estimator::quantizes(context.plan.training) && !spec.is_megatrons_own();
}

std::shared_ptr<QuantizedLayer> make_quantized_layer(const ShardContext& context,
                                                     const LinearSpec& spec,
                                                     bool row_parallel) {
  return is_quantized(context, spec) ? std::make_shared<QuantizedLayer>(context, spec, row_parallel)
                                     : nullptr;
}

namespace {

bool gathers_input(const LinearCall& call) {
  return !call.quantized->row_parallel && call.sequence_parallel && call.tensor_group;
}

Quantized gathered(const LinearCall& call, const Quantized& part) {
  const QuantizedProducts& products = call.quantized->products;
  Quantized whole = products.memory_for_all(part, *call.tensor_group);
  products.gather(whole, part, *call.tensor_group, /*overlaps=*/false);
  return whole;
}

/// By columns for the weight's product; TransformerEngine's layer with a norm makes them always.
Quantized quantized_gradient(const LinearCall& call, const at::Tensor& gradient) {
  const QuantizedLayer& layer = *call.quantized;
  const QuantizedProducts& products = layer.products;
  const bool columns = call.trains_weight || layer.after_norm;
  const bool gathers = layer.row_parallel && call.sequence_parallel && call.tensor_group;
  if (!gathers) {
    return products.quantize(gradient, QuantizedRole::kGradient, {.columns = columns});
  }
  Quantized whole =
      gathered(call,
               products.quantize(gradient,
                                 QuantizedRole::kGradient,
                                 {.columns = columns && products.gathers_columns(), .waits = true},
                                 call.tensor_group));
  if (columns) products.transpose(whole);
  return whole;
}

/// [..., k] of the input times the weight, and the bias.
at::Tensor forward_product(const LinearCall& call,
                           const Quantized& input,
                           c10::ScalarType type,
                           const std::optional<at::Tensor>& bias,
                           WeightUse use) {
  QuantizedLayer& layer = *call.quantized;
  const at::Tensor product = layer.products.multiply(
      input.along_rows(), layer.weight(call, use).along_rows().transposed(), type, bias);
  const at::Tensor output = product.view(product_shape(input.by_rows, product.size(1)));
  return layer.row_parallel ? summed(call, output) : output;
}

at::Tensor gradient_of_input(const LinearCall& call,
                             const Quantized& gradient,
                             c10::ScalarType type) {
  QuantizedLayer& layer = *call.quantized;
  return layer.products
      .multiply(
          gradient.along_rows(), layer.weight(call, WeightUse::kBackward).along_columns(), type)
      .view(product_shape(gradient.by_rows, call.weight->value.size(1)));
}

/// A forward.
struct KeptCall {
  CallPointer call;
  bool agrees;  ///< on delayed scales of gradients after its backward
};

struct QuantizedFunction : torch::autograd::Function<QuantizedFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor&,  // the weight
                            const std::optional<at::Tensor>& bias,
                            const KeptCall& kept_call) {
    keep(context, kept_call);
    const CallPointer& call = kept_call.call;
    start_product(*call, input);
    QuantizedLayer& layer = *call->quantized;
    const QuantizedProducts& products = layer.products;
    const bool gathers = gathers_input(*call);
    const c10::ScalarType type = input.scalar_type();

    const bool keeps_columns = !layer.keeps_input && (!gathers || products.gathers_columns());
    Quantized held = products.quantize(
        input,
        QuantizedRole::kInput,
        {.rows = true, .columns = keeps_columns, .waits = gathers, .of_norm = layer.frees_input},
        gathers ? call->tensor_group : nullptr);
    keep_input(context, layer, input, held, gathers);
    if (layer.frees_input) take_memory(input);
    held.by_columns.reset();
    if (gathers) held = gathered(*call, held);
    return forward_product(*call, held, type, bias, use_in_forward(input));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const KeptCall& kept_call = kept<KeptCall>(context);
    const CallPointer& call = kept_call.call;
    const variable_list saved = context->get_saved_variables();
    QuantizedLayer& layer = *call->quantized;
    const QuantizedProducts& products = layer.products;
    const at::Tensor& sixteen_bits = gradients[0];

    const Quantized gradient = quantized_gradient(*call, sixteen_bits);
    Quantized input = kept_input(*call, saved);
    PendingCall gathering;
    if (gathers_input(*call)) {
      Quantized whole = products.memory_for_all(input, *call->tensor_group);
      gathering = products.gather(whole, input, *call->tensor_group, call->overlaps_backward);
      input = whole;
    }
    at::Tensor input_gradient = gradient_of_input(*call, gradient, sixteen_bits.scalar_type());
    const at::Tensor whole_gradient = call->overlaps_backward ? input_gradient : at::Tensor();
    PendingCall summing;
    if (call->tensor_group && !layer.row_parallel) summing = start_sum(*call, input_gradient);
    const bool adds_bias = call->has_bias && !layer.row_parallel;
    const at::Tensor bias = adds_bias ? call->products.bias_gradient(sixteen_bits) : at::Tensor();
    gathering.wait();
    if (gathers_input(*call)) products.transpose(input);
    const at::Tensor of_weight = finish_weight(call, gradient, input, sixteen_bits.scalar_type());
    summing.wait();
    if (kept_call.agrees) layer.scales.agree_after_backward();
    return {input_gradient, of_weight, bias, at::Tensor()};
  }

 private:
  /// Columns where there are any: "All-gather is not supported with FP8 column-wise data"
  /// (linear.py).
  static void keep_input(AutogradContext* context,
                         const QuantizedLayer& layer,
                         const at::Tensor& input,
                         const Quantized& held,
                         bool gathers) {
    const variable_list of_rows{held.by_rows, held.scale_of_rows, held.largest_of_rows};
    variable_list kept{held.by_columns, held.scale_of_columns, held.largest_of_columns};
    if (layer.keeps_input) {
      kept = {input, at::Tensor(), at::Tensor()};
    } else if (!held.by_columns.defined()) {
      kept = of_rows;
    } else if (gathers && layer.keeps_rows) {
      kept.insert(kept.end(), of_rows.begin(), of_rows.end());
    }
    context->save_for_backward(kept);
  }

  static Quantized kept_input(const LinearCall& call, const variable_list& saved) {
    const QuantizedProducts& products = call.quantized->products;
    if (call.quantized->keeps_input) {
      const bool gathers = gathers_input(call);
      return products.quantize(saved[0],
                               QuantizedRole::kInput,
                               {.rows = !products.gathers_columns(),
                                .columns = !gathers || products.gathers_columns(),
                                .waits = gathers},
                               gathers ? call.tensor_group : nullptr);
    }
    Quantized input{.scales_are_ready = !gathers_input(call)};
    const bool by_columns =
        gathers_input(call) ? products.gathers_columns() : products.keeps_columns();
    (by_columns ? input.by_columns : input.by_rows) = saved[0];
    (by_columns ? input.scale_of_columns : input.scale_of_rows) = saved[1];
    (by_columns ? input.largest_of_columns : input.largest_of_rows) = saved[2];
    return input;
  }

  /// The weight's gradient for autograd; undefined when it went straight into the main gradient.
  static at::Tensor finish_weight(const CallPointer& call,
                                  const Quantized& gradient,
                                  const Quantized& input,
                                  c10::ScalarType type) {
    if (!call->fused_gradient) {
      const QuantizedOperand left = gradient.along_columns().transposed();
      return call->quantized->products.multiply(left, input.along_columns(), type);
    }
    now_or_delayed(*call, [call, gradient, input] {
      call->quantized->products.multiply_and_add(call->weight->main_gradient,
                                                 gradient.along_columns().transposed(),
                                                 input.along_columns());
      call->weight->contribution_added();
    });
    return gradient_stand_in(*call);
  }
};

/// Of a weight that does not change.
struct FrozenQuantizedFunction : torch::autograd::Function<FrozenQuantizedFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor&,  // the weight
                            const std::optional<at::Tensor>& bias,
                            const std::optional<at::Tensor>& held,
                            const KeptCall& kept_call) {
    keep(context, kept_call);
    const CallPointer& call = kept_call.call;
    start_product(*call, input);
    const QuantizedLayer& layer = *call->quantized;
    const c10::ScalarType type = input.scalar_type();
    const bool is_part = held && !held->is_same(input);
    const Quantized part = is_part ? rows_of(layer, *held, /*waits=*/true) : Quantized();
    const bool gathers = gathers_input(*call);
    Quantized read = rows_of(layer, input, gathers);
    const Quantized& saved = is_part ? part : read;
    if (held) context->save_for_backward({saved.by_rows, saved.scale_of_rows});
    if (layer.frees_input) take_memory(input);
    if (gathers) read = gathered(*call, read);
    return forward_product(*call, read, type, bias, use_in_forward(input));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const KeptCall& kept_call = kept<KeptCall>(context);
    const CallPointer& call = kept_call.call;
    const Quantized gradient = quantized_gradient(*call, gradients[0]);
    at::Tensor of_input = gradient_of_input(*call, gradient, gradients[0].scalar_type());
    if (call->tensor_group && !call->quantized->row_parallel) start_sum(*call, of_input).wait();
    if (kept_call.agrees) call->quantized->scales.agree_after_backward();
    return {of_input, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }

 private:
  static Quantized rows_of(const QuantizedLayer& layer, const at::Tensor& input, bool waits) {
    return layer.products.quantize(input,
                                   QuantizedRole::kInput,
                                   {.columns = false, .waits = waits, .of_norm = layer.frees_input},
                                   layer.agreeing);
  }
};

}  // namespace

at::Tensor quantized_linear(const at::Tensor& input,
                            const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias,
                            const at::Tensor& held,
                            const std::shared_ptr<const LinearCall>& call) {
  ScaledModule& scales = call->quantized->scales;
  scales.begin();
  const bool has_backward = call->trains_weight || input.requires_grad();
  const KeptCall kept_call{call, has_backward && scales.comes_first(/*leaves_it=*/true)};
  at::Tensor output = call->trains_weight ? QuantizedFunction::apply(input, weight, bias, kept_call)
                                          : FrozenQuantizedFunction::apply(
                                                input, weight, bias, if_defined(held), kept_call);
  scales.end();
  return output;
}

}  // namespace models
