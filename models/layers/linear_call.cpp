#include "models/layers/linear_call.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include "estimator/plan/megatron_core.h"
#include "models/layers/quantized_linear.h"
#include "models/layers/sequence_mappings.h"

namespace models {
namespace {

std::shared_ptr<DeferredProducts> make_deferred_products(const ShardContext& context,
                                                         const LinearSpec& spec) {
  const estimator::ParallelConfig& parallelism = context.plan.parallelism;
  if (!spec.output_layer || !parallelism.defer_embedding_wgrad_compute) return nullptr;
  return std::make_shared<DeferredProducts>(parallelism.wgrad_deferral_limit);
}

at::Tensor kept_reduce_scatter(const LinearCall& call, const at::Tensor& partial) {
  const auto run = [&] { return reduce_scatter_sequence(partial, *call.tensor_group); };
  if (!call.keeper) return run();
  return call.keeper->keep([&] { return OutputKeeper::Outputs{run()}; }).front();
}

/// Where a segment may have kept the product, the sum is another tensor, as in PyTorch's functional
/// collectives.
at::Tensor all_reduced(const LinearCall& call, const at::Tensor& partial) {
  at::Tensor sum = call.keeper ? partial.clone() : partial;
  call.tensor_group->all_reduce(sum);
  return sum;
}

/// Functions of transformer_engine/pytorch/module.
const char* python_of(bool transformer_engine, const LinearSpec& spec) {
  if (!transformer_engine) return nullptr;
  return spec.after_norm ? "_LayerNormLinear" : "_Linear";
}

}  // namespace

at::Tensor summed(const LinearCall& call, const at::Tensor& partial) {
  if (!call.tensor_group) return partial;
  return call.sequence_parallel ? kept_reduce_scatter(call, partial) : all_reduced(call, partial);
}

LinearCall::LinearCall(const ShardContext& context,
                       ParameterStore& parameters,
                       const LinearSpec& spec,
                       Parameter& matrix,
                       bool row_parallel)
    : store(&parameters),
      weight(&matrix),
      trains_weight(matrix.trained),
      has_bias(spec.bias && !spec.caller_adds_bias),
      autograds_own(context.framework().autograd_products),
      transformer_engine(context.transformer_engine() && !spec.is_megatrons_own()),
      products(spec.is_megatrons_own() ? Products(Products::Options()) : context.products()),
      lasting_stand_ins(
          context.transformer_engine() &&
          (!spec.is_megatrons_own() || estimator::output_stand_in_lasts(context.plan.training))),
      global_memory(
          (context.framework().fused_weight_gradient && !transformer_engine && trains_weight) ||
          context.plan.parallelism.tp_recompute_allgather),
      keeps_gathered(context.framework().keeps_gathered_input &&
                     !context.plan.parallelism.tp_recompute_allgather),
      asynchronous(context.plan.parallelism.tp_linear_async_communication),
      overlaps_backward(asynchronous || (estimator::overlaps_linear_backward(context.plan) &&
                                         (trains_weight || transformer_engine))),
      fused_gradient(context.fused_weight_gradient()),
      of_dtensors(context.has_dtensors()),
      tensor_group(spec.duplicated || spec.whole_input || spec.caller_sums ? nullptr
                                                                           : context.groups.tensor),
      sequence_parallel(context.sequence_parallel() && !spec.adapter),
      buffers(context.buffers),
      keeper(context.keeper),
      deferred(make_deferred_products(context, spec)),
      // TELMHeadColumnParallelLinear never puts its own off.
      delayed(transformer_engine && !spec.output_layer ? context.delayed_gradients : nullptr),
      quantized(make_quantized_layer(context, spec, row_parallel)),
      plan(&context.plan),
      modules(context.modules),
      python(python_of(transformer_engine, spec)),
      name(spec.name) {}

at::Tensor gradient_stand_in(const LinearCall& call) {
  const c10::NoGradGuard no_grad;
  Parameter& weight = *call.weight;
  const bool is_summed = weight.autograd_adds_too;
  const bool is_dropped = !is_summed && (!call.lasting_stand_ins || weight.contributions > 1);
  weight.gradient_is_stand_in = is_dropped;
  if (!call.lasting_stand_ins) {
    return is_summed ? at::zeros_like(weight.value) : at::empty_like(weight.value);
  }
  const at::Tensor lasting = call.store->gradient_stand_in(weight.value);
  if (is_summed) return lasting.zero_().detach();
  return is_dropped ? lasting.detach() : at::Tensor();
}

void now_or_delayed(const LinearCall& call, std::function<void()> add) {
  if (!call.delayed) return add();
  call.delayed->add({.module = call.name, .run = std::move(add)});
}

std::vector<int64_t> whole_shape(const LinearCall& call, const at::Tensor& part) {
  std::vector<int64_t> shape = part.sizes().vec();
  shape[0] *= call.tensor_group->size();
  return shape;
}

at::Tensor sequence_buffer(const LinearCall& call, const at::Tensor& part) {
  const std::vector<int64_t> shape = whole_shape(call, part);
  return call.global_memory ? call.buffers->global_memory(shape, part.options())
                            : at::empty(shape, part.options());
}

at::Tensor gather(const LinearCall& call, const at::Tensor& part) {
  at::Tensor whole = sequence_buffer(call, part);
  call.tensor_group->all_gather(whole, part.contiguous());
  return whole;
}

PendingCall start_gather(const LinearCall& call, const at::Tensor& whole, const at::Tensor& part) {
  if (call.overlaps_backward) return call.tensor_group->start_all_gather(whole, part.contiguous());
  call.tensor_group->all_gather(whole, part.contiguous());
  return PendingCall();
}

PendingCall start_sum(const LinearCall& call, at::Tensor& gradient) {
  Communicator& group = *call.tensor_group;
  if (!call.sequence_parallel) {
    if (call.overlaps_backward) return group.start_all_reduce(gradient);
    group.all_reduce(gradient);
    return PendingCall();
  }
  if (!call.overlaps_backward) {
    gradient = reduce_scatter_sequence(gradient, group);
    return PendingCall();
  }
  std::vector<int64_t> shape = gradient.sizes().vec();
  shape[0] /= group.size();
  const at::Tensor whole = std::exchange(gradient, at::empty(shape, gradient.options()));
  return group.start_reduce_scatter(gradient, whole.contiguous());
}

void start_product(const LinearCall& call, const at::Tensor& input) {
  if (call.transformer_engine) {
    if (call.quantized && call.quantized->products.in_four_bits()) {
      call.buffers->use_hadamard_matrix(input.device());
    }
    call.buffers->use_transformer_engine_workspace(*call.plan, input.device());
  }
}

}  // namespace models
