#include "models/experts/flex_dispatcher.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/item.h>
#include <ATen/ops/select.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "estimator/communication/expert_dispatch.h"
#include "estimator/communication/fabric.h"
#include "estimator/plan/drawn_experts.h"
#include "estimator/plan/fused_experts.h"
#include "models/experts/token_permutation.h"
#include "models/layers/sequence_mappings.h"
#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"

namespace models {

/// What a library is asked for; both ways of a call, forward and backward.
struct LibraryCall {
  int64_t tokens, rows;  ///< of this rank; of its experts, or with DeepEP those that arrive
  int64_t filled;        ///< of these rows, for as many of which there is memory
  int64_t weights;       ///< of a token
  int64_t weights_of_row;
  int64_t arrived;  ///< as above
  bool is_copied;   ///< to a buffer of the library, from which it is sent
};

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A tensor that a kernel of the library writes.
at::Tensor written_by(std::string_view kernel,
                      const at::Tensor& read,
                      int64_t rows,
                      int64_t columns) {
  return as_kernel(kernel.data(), read, [&] { return at::empty({rows, columns}, read.options()); });
}

/// HybridEP sorts the tokens that arrived by expert in a kernel after its dispatch, which makes
/// `rows` of them, or sums these before its combine. With `arrived` 0 it is DeepEP, which does not.
void record_sorting(const char* kernel, const at::Tensor& rows, const LibraryCall& call) {
  if (call.arrived == 0) return;
  KernelScope scope(kernel);
  scope.moves(rows.narrow(0, 0, call.arrived), rows.narrow(0, 0, call.filled));
}

/// Executor::dispatch_preprocess in csrc/hybrid_ep/executor/executor.cu.
void record_copy(const LibraryCall& call, at::TensorList sent) {
  if (!call.is_copied) return;
  KernelScope kernel("ep::copy_to_buffer");
  kernel.moves(sent, sent);
}

/// Rows [rows, h] of tokens [tokens, h], and their weights; both libraries send them in one call.
/// With `weights_of_row` 0 a row has one weight. Backward is a combine.
struct Dispatch : torch::autograd::Function<Dispatch> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& tokens,
                               const at::Tensor& weights,
                               const at::Tensor& handle,
                               const LibraryCall& call) {
    context->save_for_backward({handle});
    keep(context, call);
    record_copy(call, {tokens, weights});
    variable_list written = as_kernel(estimator::kDispatchKernel.data(), {tokens, weights}, [&] {
      return variable_list{at::empty({call.rows, tokens.size(1)}, tokens.options()),
                           call.weights_of_row == 0
                               ? at::empty({call.rows}, weights.options())
                               : at::empty({call.rows, call.weights_of_row}, weights.options())};
    });
    record_sorting("te::moe_permute", written[0], call);
    return written;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto& call = kept<LibraryCall>(context);
    record_sorting("te::moe_unpermute", gradients[0], call);
    variable_list written = as_kernel(estimator::kCombineKernel.data(), gradients, [&] {
      return variable_list{at::empty({call.tokens, gradients[0].size(1)}, gradients[0].options()),
                           at::empty({call.tokens, call.weights}, gradients[1].options())};
    });
    written.resize(4);  // none of handle and call
    return written;
  }
};

/// Rows [rows, h] -> [tokens, h]. Backward is a dispatch.
struct Combine : torch::autograd::Function<Combine> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& rows,
                            const at::Tensor& handle,
                            const LibraryCall& call) {
    context->save_for_backward({handle});
    keep(context, call);
    record_sorting("te::moe_unpermute", rows, call);
    return written_by(estimator::kCombineKernel, rows, call.tokens, rows.size(1));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto& call = kept<LibraryCall>(context);
    record_copy(call, gradients[0]);
    const at::Tensor of_rows =
        written_by(estimator::kDispatchKernel, gradients[0], call.rows, gradients[0].size(1));
    record_sorting("te::moe_permute", of_rows, call);
    return {of_rows, at::Tensor(), at::Tensor()};
  }
};

/// _indices_to_multihot: the weights of arrived tokens, [tokens, topk] -> [tokens, own experts].
struct Multihot : torch::autograd::Function<Multihot> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& weights, int64_t experts) {
    context->saved_data["topk"] = weights.size(1);
    return written_by("megatron::indices_to_multihot", weights, weights.size(0), experts);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const int64_t topk = context->saved_data["topk"].toInt();
    return {written_by(
                "megatron::indices_to_multihot_backward", gradients[0], gradients[0].size(0), topk),
            at::Tensor()};
  }
};

}  // namespace

FlexDispatcher::FlexDispatcher(ShardContext& context)
    : AllToAllDispatcher(context),
      is_hybrid_(context.plan.training.moe_flex_dispatcher_backend ==
                 estimator::FlexBackend::kHybridEp),
      tokens_(chosen().size(0)),
      rows_(c10::sum_integers(rows_of_own_experts())),
      budget_(estimator::expert_row_budget(context.plan)) {
  const estimator::Plan& plan = context.plan;
  const int64_t ranks = plan.parallelism.expert, own = plan.experts_of_rank();
  arriving_tokens_ = std::llround(static_cast<double>(tokens_ * ranks) *
                                  estimator::chance_of_any(estimator::draw_of(plan.model), own));
  // sparse_to_dense_map and local_expert_routing_map of HybridEP (executor.cu); is_token_in_rank,
  // send_head and where arrived tokens came from of DeepEP (legacy.py).
  constexpr int64_t kPlaceBytes = 4, kSourceBytes = 8;
  handle_bytes_ = is_hybrid_
                      ? tokens_ * ranks * (kPlaceBytes + own)
                      : tokens_ * ranks * (kPlaceBytes + 1) + arriving_tokens_ * kSourceBytes;
  const estimator::ParallelLayout layout(plan.parallelism);
  is_copied_ =
      is_hybrid_ &&
      estimator::expert_dispatch(plan, layout, estimator::fabric_of(plan)).place.domains() > 1;
  if (budget_)
    over_budget_ = at::zeros({1}, at::TensorOptions().device(context.device).dtype(at::kBool));
  order_ = at::zeros({rows_}, at::TensorOptions().device(context.device).dtype(at::kLong));
}

/// setup_metadata(): DeepEP takes the weights of a token's experts alone.
DispatchedTokens FlexDispatcher::prepare(const at::Tensor& tokens,
                                         const RouterOutput& routed,
                                         LastTokens& last) const {
  const ModuleScope scope(context_.observer, "preprocess");
  last.map = routed.map;
  last.weights = is_hybrid_
                     ? routed.weights
                     : std::get<0>(at::topk(routed.weights, context_.plan.model.moe_router_topk));
  return {.rows = tokens, .weights = last.weights, .row_map = {}, .held = {}};
}

LibraryCall FlexDispatcher::call_of(int64_t weights) const {
  const int64_t filled = is_hybrid_ ? rows_ : arriving_tokens_;
  return {.tokens = tokens_,
          .rows = budget_.value_or(filled),
          .filled = filled,
          .weights = weights,
          .weights_of_row = is_hybrid_ ? 0 : weights,
          .arrived = sorted_tokens(),
          .is_copied = is_copied_};
}

at::Tensor FlexDispatcher::make_handle(const at::Tensor& tokens) const {
  return at::empty({handle_bytes_}, tokens.options().dtype(at::kByte).requires_grad(false));
}

void FlexDispatcher::wait_for_counts(const at::Tensor& tokens) const {
  if (context_.plan.training.moe_pad_expert_input_to_capacity) return;
  const c10::NoGradGuard no_grad;
  if (budget_) return check_budget();
  at::zeros({1}, tokens.options().dtype(at::kLong).requires_grad(false)).select(0, 0).item();
}

/// Whether more rows came than there is memory for, which the host reads after the step.
void FlexDispatcher::check_budget() const {
  const at::Tensor flag = handle_.narrow(0, 0, 1).ne(0);
  over_budget_.logical_or_(flag);
}

/// metadata_preprocessing and permute_processing (csrc/hybrid_ep/executor/executor.cu and
/// extension/permute.cu): each rank learns which experts the tokens of all have, of which one
/// kernel makes the handle, and another one where each arriving token's rows go.
void FlexDispatcher::find_ways(const at::Tensor& map) const {
  const c10::NoGradGuard no_grad;
  const Group& group = context_.groups.expert_model;
  const int64_t own = context_.plan.experts_of_rank();
  as_kernel("ep::metadata_preprocessing", group ? gather_sequence(map, *group) : map, [&] {
    return handle_;
  });
  as_kernel("ep::permute_processing", handle_.narrow(0, 0, arriving_tokens_ * own), [&] {
    return at::empty({arriving_tokens_, own}, handle_.options().dtype(at::kInt));
  });
}

DispatchedTokens FlexDispatcher::dispatch(DispatchedTokens prepared, LastTokens& last) const {
  const ModuleScope scope(context_.observer, "dispatch");
  handle_ = make_handle(prepared.rows);
  if (is_hybrid_) find_ways(last.map);
  wait_for_counts(prepared.rows);
  const variable_list sent = Dispatch::apply(
      prepared.rows, prepared.weights.to(at::kFloat), handle_, call_of(prepared.weights.size(1)));
  return {.rows = sent[0], .weights = sent[1], .row_map = {}, .held = {sent[0]}};
}

DispatchedTokens FlexDispatcher::arrange(DispatchedTokens arrived, LastTokens& last) const {
  const ModuleScope scope(context_.observer, "dispatch");
  if (!is_hybrid_) return permuted(std::move(arrived), last);
  arrived.weights = arrived.weights.unsqueeze(-1);
  return arrived;
}

/// get_permuted_hidden_states_by_experts()
DispatchedTokens FlexDispatcher::permuted(DispatchedTokens arrived, LastTokens& last) const {
  const int64_t own = context_.plan.experts_of_rank();
  const at::Tensor weights = Multihot::apply(arrived.weights, own);
  arrived.row_map = make_row_map(arrived.rows, arriving_tokens_, own);
  last.row_map = arrived.row_map;
  arrived.rows = permute_tokens(
      arrived.rows, order_, arrived.row_map, {.buffers = context_.buffers, .has_weights = true});
  arrived.weights = at::index_select(weights.view(-1), 0, order_).unsqueeze(-1);
  return arrived;
}

at::Tensor FlexDispatcher::collect(const at::Tensor& outputs,
                                   const DispatchedTokens& dispatched) const {
  const ModuleScope scope(context_.observer, "combine");
  if (is_hybrid_) return outputs;
  return unpermute_tokens(
      outputs, order_, dispatched.row_map, arriving_tokens_, {.buffers = context_.buffers});
}

at::Tensor FlexDispatcher::send_back(const at::Tensor& rows) const {
  const ModuleScope scope(context_.observer, "combine");
  return Combine::apply(rows, std::exchange(handle_, {}), call_of(/*weights=*/0));
}

at::Tensor FlexDispatcher::combine(const at::Tensor& rows, const DispatchedTokens&) const {
  return rows;
}

}  // namespace models
