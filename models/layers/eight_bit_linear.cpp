#include "models/layers/eight_bit_linear.h"

#include "models/layers/linear_call.h"
#include "models/layers/sequence_mappings.h"
#include "models/shard/eight_bit_parameter.h"
#include "models/shard/kept_value.h"
#include "models/shard/unbacked_tensor.h"

namespace models {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

EightBitLayer::EightBitLayer(const ShardContext& context, const LinearSpec& spec, bool is_row)
    : products(context.plan, context.device_computes),
      row_parallel(is_row),
      keeps_input(spec.input_is_kept && products.finds_scale()),
      frees_input(spec.after_norm),
      observer_(context.observer) {}

const EightBits& EightBitLayer::weight(const LinearCall& call) {
  return weight_.of(*call.weight, call.store->iteration(), products, observer_);
}

bool is_in_eight_bits(const ShardContext& context, const LinearSpec& spec) {
  return context.plan.training.fp8_format != estimator::Fp8Format::kNone && !spec.output_layer;
}

std::shared_ptr<EightBitLayer> make_eight_bit_layer(const ShardContext& context,
                                                    const LinearSpec& spec,
                                                    bool row_parallel) {
  return is_in_eight_bits(context, spec)
             ? std::make_shared<EightBitLayer>(context, spec, row_parallel)
             : nullptr;
}

namespace {

struct EightBitFunction : torch::autograd::Function<EightBitFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor&,  // the weight
                            const std::optional<at::Tensor>& bias,
                            const CallPointer& call) {
    keep(context, call);
    start_product(*call, input);
    EightBitLayer& layer = *call->eight_bits;
    const EightBitProducts& products = layer.products;
    const bool gathers = gathers_input(*call);
    const c10::ScalarType type = input.scalar_type();

    const bool keeps_columns = !layer.keeps_input && (!gathers || products.gathers_columns());
    EightBits held = products.quantize(input,
                                       products.type(),
                                       {.rows = true, .columns = keeps_columns, .waits = gathers},
                                       gathers ? call->tensor_group : nullptr);
    keep_input(context, layer, input, held);
    if (layer.frees_input) take_memory(input);
    held.by_columns.reset();
    if (gathers) held = gathered(*call, held);
    const at::Tensor product = products.multiply(
        held.along_rows(), layer.weight(*call).along_rows().transposed(), type, bias);
    const at::Tensor output = product.view(product_shape(held.by_rows, product.size(1)));
    return layer.row_parallel ? summed(*call, output) : output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const CallPointer& call = kept<CallPointer>(context);
    const variable_list saved = context->get_saved_variables();
    EightBitLayer& layer = *call->eight_bits;
    const EightBitProducts& products = layer.products;
    const at::Tensor& sixteen_bits = gradients[0];

    const EightBits gradient = quantized_gradient(*call, sixteen_bits);
    EightBits input = kept_input(*call, saved);
    PendingCall gathering;
    if (gathers_input(*call)) {
      const EightBits whole = products.memory_for_all(input, *call->tensor_group);
      gathering = products.gather(whole, input, *call->tensor_group, call->overlaps_backward);
      input = whole;
    }
    at::Tensor input_gradient =
        products
            .multiply(gradient.along_rows(),
                      layer.weight(*call).along_columns(),
                      sixteen_bits.scalar_type())
            .view(product_shape(gradient.by_rows, call->weight->value.size(1)));
    const at::Tensor whole_gradient = call->overlaps_backward ? input_gradient : at::Tensor();
    PendingCall summing;
    if (call->tensor_group && !layer.row_parallel) summing = start_sum(*call, input_gradient);
    const bool adds_bias = call->has_bias && !layer.row_parallel;
    const at::Tensor bias = adds_bias ? call->products.bias_gradient(sixteen_bits) : at::Tensor();
    gathering.wait();
    if (gathers_input(*call)) products.transpose(input);
    const at::Tensor of_weight = finish_weight(*call, gradient, input, sixteen_bits.scalar_type());
    summing.wait();
    return {input_gradient, of_weight, bias, at::Tensor()};
  }

 private:
  static bool gathers_input(const LinearCall& call) {
    return !call.eight_bits->row_parallel && call.sequence_parallel && call.tensor_group;
  }

  static EightBits gathered(const LinearCall& call, const EightBits& part) {
    const EightBitProducts& products = call.eight_bits->products;
    EightBits whole = products.memory_for_all(part, *call.tensor_group);
    products.gather(whole, part, *call.tensor_group, /*overlaps=*/false);
    return whole;
  }

  /// Columns where there are any: "All-gather is not supported with FP8 column-wise data"
  /// (linear.py).
  static void keep_input(AutogradContext* context,
                         const EightBitLayer& layer,
                         const at::Tensor& input,
                         const EightBits& held) {
    if (layer.keeps_input) {
      context->save_for_backward({input, at::Tensor()});
    } else if (held.by_columns.defined()) {
      context->save_for_backward({held.by_columns, held.scale_of_columns});
    } else {
      context->save_for_backward({held.by_rows, held.scale_of_rows});
    }
  }

  static EightBits kept_input(const LinearCall& call, const variable_list& saved) {
    const EightBitProducts& products = call.eight_bits->products;
    if (call.eight_bits->keeps_input) {
      const bool gathers = gathers_input(call);
      return products.quantize(saved[0],
                               products.type(),
                               {.rows = !products.gathers_columns(),
                                .columns = !gathers || products.gathers_columns(),
                                .waits = gathers},
                               gathers ? call.tensor_group : nullptr);
    }
    EightBits input{.scales_are_ready = !gathers_input(call)};
    const bool by_columns =
        gathers_input(call) ? products.gathers_columns() : products.keeps_columns();
    (by_columns ? input.by_columns : input.by_rows) = saved[0];
    (by_columns ? input.scale_of_columns : input.scale_of_rows) = saved[1];
    return input;
  }

  static EightBits quantized_gradient(const LinearCall& call, const at::Tensor& gradient) {
    const EightBitProducts& products = call.eight_bits->products;
    const bool gathers =
        call.eight_bits->row_parallel && call.sequence_parallel && call.tensor_group;
    if (!gathers) return products.quantize(gradient, products.gradient_type(), EightBitUse());
    EightBits whole = gathered(
        call,
        products.quantize(gradient,
                          products.gradient_type(),
                          {.rows = true, .columns = products.gathers_columns(), .waits = true},
                          call.tensor_group));
    products.transpose(whole);
    return whole;
  }

  /// The weight's gradient for autograd; undefined when it went straight into the main gradient.
  static at::Tensor finish_weight(const LinearCall& call,
                                  const EightBits& gradient,
                                  const EightBits& input,
                                  c10::ScalarType type) {
    const EightBitProducts& products = call.eight_bits->products;
    const EightBitOperand left = gradient.along_columns().transposed();
    if (!call.fused_gradient) return products.multiply(left, input.along_columns(), type);
    products.multiply_and_add(call.weight->main_gradient, left, input.along_columns());
    call.weight->contribution_added();
    return gradient_stand_in(call);
  }
};

}  // namespace

at::Tensor eight_bit_linear(const at::Tensor& input,
                            const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias,
                            const std::shared_ptr<const LinearCall>& call) {
  return EightBitFunction::apply(input, weight, bias, call);
}

}  // namespace models
