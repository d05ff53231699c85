#include "models/layers/parallel_linear.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <c10/core/GradMode.h>

#include <functional>
#include <optional>
#include <utility>

#include "models/layers/linear_call.h"
#include "models/layers/parallel_adapter.h"
#include "models/layers/quantized_linear.h"
#include "models/layers/sequence_mappings.h"
#include "models/shard/host_work.h"
#include "models/shard/kept_value.h"
#include "models/shard/products.h"
#include "models/shard/quantized_parameter.h"

namespace models {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

/// The weight's gradient for autograd; undefined when it went straight into the main gradient, or
/// there is none.
at::Tensor finish_weight(const CallPointer& call,
                         const at::Tensor& output_gradient,
                         const at::Tensor& input) {
  if (!call->trains_weight) return {};
  constexpr int kAgainForPart = 4;  // both products, and the nodes of redistribute() and to_local()
  if (call->of_dtensors) dispatch_on_host(kAgainForPart);
  if (!call->fused_gradient) return weight_gradient(call->products, output_gradient, input);
  now_or_delayed(*call, [call, output_gradient, input] {
    add_weight_gradient(call->products, *call->weight, output_gradient, input);
  });
  return gradient_stand_in(*call);
}

/// The product of a whole sequence with `matrix`, [k, n]: that of this rank's part runs while the
/// other parts are gathered into `whole`; those before and after it follow, each by itself
/// (_ColumnLinearAsyncCommunication and _RowLinearAsyncCommunication in
/// nanotron/parallel/tensor_parallel/functional.py, 2411b022).
at::Tensor multiply_while_gathering(const LinearCall& call,
                                    const at::Tensor& part,
                                    const at::Tensor& whole,
                                    const at::Tensor& matrix,
                                    const std::optional<at::Tensor>& bias) {
  Communicator& group = *call.tensor_group;
  const at::Tensor own = part.contiguous();
  PendingCall gathering = group.start_all_gather(whole, own);
  at::Tensor product = at::empty(product_shape(whole, matrix.size(1)), part.options());
  const int64_t length = own.size(0);
  const auto multiply = [&](const at::Tensor& input, int64_t first) {
    if (input.size(0) == 0) return;
    at::Tensor out = rows(product.narrow(0, first, input.size(0)));
    call.products.multiply_into(out, rows(input), matrix, bias);
  };
  const int64_t first = length * group.index();
  multiply(own, first);
  gathering.wait();
  multiply(whole.narrow(0, 0, first), 0);
  const int64_t after = first + length;
  multiply(whole.narrow(0, after, whole.size(0) - after), after);
  return product;
}

/// PyTorch's linear layer with a bias is aten::addmm, which is on no list.
at::Tensor kept_product(const LinearCall& call, const std::function<at::Tensor()>& run) {
  constexpr int kAgainForPart = 2;  // mm and _unsafe_view
  if (call.of_dtensors) dispatch_on_host(kAgainForPart);
  return call.keeper && !call.has_bias ? call.keeper->keep_product(run) : run();
}

struct ColumnParallelFunction : torch::autograd::Function<ColumnParallelFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias,
                            const CallPointer& call) {
    keep(context, call);
    start_product(*call, input);
    const bool sequence_parallel = call->sequence_parallel && call->tensor_group;
    if (sequence_parallel && call->asynchronous) {
      const at::Tensor whole = sequence_buffer(*call, input);
      context->save_for_backward({call->keeps_gathered ? whole : input, weight});
      return multiply_while_gathering(*call, input, whole, weight.t(), bias);
    }
    const at::Tensor whole = sequence_parallel ? gather(*call, input) : input;
    context->save_for_backward({call->keeps_gathered ? whole : input, weight});
    return kept_product(*call, [&] { return call->products.linear(whole, weight, bias); });
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const CallPointer& call = kept<CallPointer>(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    const at::Tensor& gradient = gradients[0];
    const bool sequence_parallel = call->sequence_parallel && call->tensor_group;

    const bool deferred = call->deferred && call->deferred->take_more();
    if (deferred) call->deferred->take({.input = saved[0], .output_gradient = gradient});
    at::Tensor input = saved[0];
    PendingCall gathering;
    if (sequence_parallel && !call->keeps_gathered && !deferred) {
      input = sequence_buffer(*call, saved[0]);
      gathering = start_gather(*call, input, saved[0]);
    }
    at::Tensor input_gradient = call->products.multiply(gradient, weight);
    // Held beside the part that it is reduced to until that is there.
    const at::Tensor whole_gradient =
        call->global_memory || call->overlaps_backward ? input_gradient : at::Tensor();
    PendingCall summing;
    if (call->tensor_group) summing = start_sum(*call, input_gradient);
    const at::Tensor bias = call->has_bias ? call->products.bias_gradient(gradient) : at::Tensor();
    gathering.wait();
    const at::Tensor of_weight =
        deferred ? gradient_stand_in(*call) : finish_weight(call, gradient, input);
    summing.wait();
    return {input_gradient, of_weight, bias, at::Tensor()};
  }
};

/// Of a weight that does not change: LinearWithFrozenWeight in
/// megatron/core/tensor_parallel/layers.py, and TransformerEngine's modules. Nothing is kept of the
/// input, and backward gathers nothing. `held` is what TransformerEngine keeps all the same, or
/// undefined.
struct FrozenColumnFunction : torch::autograd::Function<FrozenColumnFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias,
                            const std::optional<at::Tensor>& held,
                            const CallPointer& call) {
    keep(context, call);
    start_product(*call, input);
    context->save_for_backward({weight, held.value_or(at::Tensor())});
    const bool gathers = call->sequence_parallel && call->tensor_group;
    return call->products.linear(gathers ? gather(*call, input) : input, weight, bias);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const CallPointer& call = kept<CallPointer>(context);
    at::Tensor of_input = call->products.multiply(gradients[0], context->get_saved_variables()[0]);
    if (call->tensor_group) start_sum(*call, of_input).wait();
    return {of_input, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

/// gather_from_sequence() as TransformerEngine's layer does it for a product and an adapter.
struct GatherForBoth : torch::autograd::Function<GatherForBoth> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& part,
                            const std::shared_ptr<Communicator>& group) {
    keep(context, group);
    return gather_sequence(part, *group);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    Communicator& group = *kept<std::shared_ptr<Communicator>>(context);
    std::vector<int64_t> shape = gradients[0].sizes().vec();
    shape[0] /= group.size();
    const at::Tensor part = at::empty(shape, gradients[0].options());
    group.start_reduce_scatter(part, gradients[0].contiguous()).wait();
    return {part, at::Tensor()};
  }
};

struct RowParallelFunction : torch::autograd::Function<RowParallelFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor& weight,
                            const CallPointer& call) {
    keep(context, call);
    context->save_for_backward({call->trains_weight ? input : at::Tensor(), weight});
    start_product(*call, input);
    at::Tensor partial =
        kept_product(*call, [&] { return call->products.multiply(input, weight.t()); });
    return summed(*call, partial);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const CallPointer& call = kept<CallPointer>(context);
    const variable_list saved = context->get_saved_variables();
    const bool gather = call->sequence_parallel && call->tensor_group;
    if (gather && call->asynchronous) {
      const at::Tensor& part = gradients[0];
      const at::Tensor whole =
          call->buffers->global_memory(whole_shape(*call, part), part.options(), "allgather2");
      at::Tensor of_input = multiply_while_gathering(*call, part, whole, saved[1], std::nullopt);
      return {of_input, finish_weight(call, whole, saved[0]), at::Tensor()};
    }
    const at::Tensor gradient =
        gather ? gather_sequence(gradients[0], *call->tensor_group) : gradients[0];
    at::Tensor input_gradient = call->products.multiply(gradient, saved[1]);
    return {input_gradient, finish_weight(call, gradient, saved[0]), at::Tensor()};
  }
};

/// A kept input on its way to the whole sequence.
struct Gathering {
  at::Tensor whole;
  std::optional<PendingCall> call;
};

Gathering start_gathering(const LinearCall& call, const at::Tensor& input, std::size_t number) {
  if (!call.sequence_parallel || !call.tensor_group) return {.whole = input, .call = {}};
  at::Tensor whole = call.buffers->global_memory(
      whole_shape(call, input), input.options(), number % 2 == 0 ? "mpu_0" : "mpu_1");
  PendingCall pending = call.tensor_group->start_all_gather(whole, input.contiguous());
  return {.whole = std::move(whole), .call = std::move(pending)};
}

Parameter& weight_of(const ShardContext& context,
                     ParameterStore& store,
                     const LinearSpec& spec,
                     int64_t sharded_dim) {
  if (spec.shared_weight != nullptr) return *spec.shared_weight;
  Parameter& weight = store.add({.name = spec.name + ".weight",
                                 .full_shape = {spec.outputs, spec.inputs},
                                 .sharded_dim = spec.duplicated ? -1 : sharded_dim,
                                 .blocks = spec.output_blocks,
                                 .sequence_partial = spec.duplicated && context.sequence_parallel(),
                                 .shared_copy = spec.shared_copy,
                                 .adapter = spec.adapter,
                                 .of_vocabulary = spec.output_layer,
                                 .group_rows = spec.group_rows,
                                 .at_mark = spec.at_mark,
                                 .packed = spec.packed});
  // TransformerEngine's output layer is made outside of what is in 8 bits alone (gpt_model.py).
  const bool held = estimator::keeps_weights_quantized(context.plan.training) && !spec.output_layer;
  if (is_quantized(context, spec) && held) {
    hold_quantized(weight, {context.plan, context.device_computes}, context.observer);
  }
  return weight;
}

/// The layer as a module; its bias is one of its parameters, also where the caller adds it.
at::Tensor as_module(const CallPointer& call,
                     Parameter* bias,
                     const at::Tensor& input,
                     const ModuleRunner::Body& body) {
  ParameterList parameters = {call->weight};
  if (bias != nullptr) parameters.push_back(bias);
  return in_module(call->modules, call.get(), parameters, input, body);
}

bool is_adapted(const ShardContext& context, const LinearSpec& spec) {
  return spec.target && estimator::has_adapter(context.plan, *spec.target);
}

/// Null without one.
std::shared_ptr<const Adapter> make_adapter(ShardContext& context,
                                            ParameterStore& store,
                                            const LinearSpec& spec,
                                            bool row_parallel) {
  if (!is_adapted(context, spec)) return nullptr;
  if (context.framework().adapters == estimator::Adapters::kMegatronBridge) {
    return std::make_shared<const ParallelAdapter>(context, store, spec, row_parallel);
  }
  return std::make_shared<const LoraAdapter>(context,
                                             store,
                                             LoraAdapter::Shape{.name = spec.name,
                                                                .inputs = spec.inputs,
                                                                .outputs = spec.outputs,
                                                                .at_mark = spec.at_mark});
}

bool gathers_for_adapter(const ShardContext& context, const LinearSpec& spec) {
  return is_adapted(context, spec) && reads_gathered_norm(context, spec);
}

LinearSpec of_product(const ShardContext& context, LinearSpec spec) {
  spec.adapter_reads = is_adapted(context, spec);
  spec.whole_input |= gathers_for_adapter(context, spec);
  return spec;
}

}  // namespace

at::Tensor whole_input(const ShardContext& context, const at::Tensor& input) {
  const Group& group = context.groups.tensor;
  if (!group) return input;
  return context.sequence_parallel() ? gather_from_sequence(input, group)
                                     : copy_to_ranks(input, group);
}

ColumnParallelLinear::ColumnParallelLinear(ShardContext& context,
                                           ParameterStore& store,
                                           const LinearSpec& spec)
    : call_(std::make_shared<const LinearCall>(
          context, store, of_product(context, spec), weight_of(context, store, spec, 0), false)),
      holds_norm_(is_adapted(context, spec) && call_->transformer_engine && spec.after_norm),
      gathering_(gathers_for_adapter(context, spec) ? context.groups.tensor : nullptr) {
  if (spec.bias) {
    bias_ = &store.add({.name = spec.name + ".bias",
                        .full_shape = {spec.outputs},
                        .sharded_dim = 0,
                        .blocks = spec.output_blocks,
                        .initial_value = InitialValue::kZeros,
                        .at_mark = spec.at_mark});
  }
  adapter_ = make_adapter(context, store, spec, false);
}

at::Tensor ColumnParallelLinear::forward(const at::Tensor& input) const {
  return as_module(call_, bias_, input, [this](const at::Tensor& in) {
    return as_python(call_->python, [&] { return compute(in); });
  });
}

at::Tensor ColumnParallelLinear::compute(const at::Tensor& input) const {
  if (!adapter_) return product(input, at::Tensor());
  const at::Tensor read = gathering_ ? GatherForBoth::apply(input, gathering_) : input;
  return adapter_->add_to(product(read, holds_norm_ ? input : at::Tensor()), read);
}

/// `held` is kept until backward; it may be undefined.
at::Tensor ColumnParallelLinear::product(const at::Tensor& input, const at::Tensor& held) const {
  const at::Tensor& weight = call_->weight->value;
  const auto bias = call_->has_bias ? std::optional<at::Tensor>(bias_->value) : std::nullopt;
  if (call_->autograds_own) return at::linear(input, weight, bias);
  if (call_->quantized) return quantized_linear(input, weight, bias, held, call_);
  if (call_->trains_weight) return ColumnParallelFunction::apply(input, weight, bias, call_);
  return FrozenColumnFunction::apply(input, weight, bias, if_defined(held), call_);
}

at::Tensor ColumnParallelLinear::bias() const {
  return bias_ && !call_->has_bias ? bias_->value : at::Tensor();
}

Parameter& ColumnParallelLinear::weight() const { return *call_->weight; }

void ColumnParallelLinear::compute_deferred_gradients() const {
  if (!call_->deferred) return;
  const c10::NoGradGuard no_grad;
  std::deque<DeferredProducts::Operands> waiting = call_->deferred->take_all_out();
  std::optional<Gathering> next;
  for (std::size_t number = 0; !waiting.empty(); ++number) {
    if (!next) next = start_gathering(*call_, waiting.front().input, number);
    if (next->call) next->call->wait();
    const at::Tensor input = std::move(next->whole);
    const at::Tensor output_gradient = std::move(waiting.front().output_gradient);
    waiting.pop_front();
    next.reset();
    if (!waiting.empty()) next = start_gathering(*call_, waiting.front().input, number + 1);
    add_weight_gradient(call_->products, *call_->weight, output_gradient, input);
  }
}

RowParallelLinear::RowParallelLinear(ShardContext& context,
                                     ParameterStore& store,
                                     const LinearSpec& spec)
    : call_(std::make_shared<const LinearCall>(
          context, store, of_product(context, spec), weight_of(context, store, spec, 1), true)) {
  if (spec.bias) {
    bias_ = &store.add({.name = spec.name + ".bias",
                        .full_shape = {spec.outputs},
                        .initial_value = InitialValue::kZeros,
                        .sequence_partial = context.sequence_parallel() && !spec.caller_sums,
                        .at_mark = spec.at_mark});
  }
  adapter_ = make_adapter(context, store, spec, true);
}

at::Tensor RowParallelLinear::forward(const at::Tensor& input) const {
  return as_module(call_, bias_, input, [this](const at::Tensor& in) {
    return as_python(call_->python, [&] { return compute(in); });
  });
}

at::Tensor RowParallelLinear::compute(const at::Tensor& input) const {
  const at::Tensor output = product(input);
  return adapter_ ? adapter_->add_to(output, input) : output;
}

at::Tensor RowParallelLinear::product(const at::Tensor& input) const {
  const at::Tensor& weight = call_->weight->value;
  if (call_->autograds_own) {
    const auto bias = bias_ ? std::optional<at::Tensor>(bias_->value) : std::nullopt;
    return at::linear(input, weight, bias);
  }
  if (call_->quantized) return quantized_linear(input, weight, {}, {}, call_);
  return RowParallelFunction::apply(input, weight, call_);
}

at::Tensor RowParallelLinear::bias() const {
  return bias_ && !call_->autograds_own ? bias_->value : at::Tensor();
}

}  // namespace models
