#include "models/experts/all_gather_dispatcher.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/item.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/experts/expert_routing.h"
#include "models/experts/token_permutation.h"
#include "models/layers/sequence_mappings.h"
#include "models/shard/kept_value.h"

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct SharedBuffer {
  Group group;
  std::shared_ptr<FrameworkBuffers> buffers;

  at::Tensor of_rows(const at::Tensor& like, int64_t rows) const {
    return buffers->global_memory(with_rows(like, rows), like.options());
  }
};

/// gather_from_sequence_parallel_region with use_global_buffer (megatron/core/tensor_parallel/
/// mappings.py): both directions write into the global memory buffer.
struct GatherIntoBuffer : torch::autograd::Function<GatherIntoBuffer> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const SharedBuffer& buffer) {
    keep(context, buffer);
    at::Tensor whole = buffer.of_rows(input, input.size(0) * buffer.group->size());
    buffer.group->all_gather(whole, input.contiguous());
    return whole;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const SharedBuffer& buffer = kept<SharedBuffer>(context);
    const at::Tensor part =
        buffer.of_rows(gradients[0], gradients[0].size(0) / buffer.group->size());
    buffer.group->reduce_scatter(part, gradients[0].contiguous());
    return {part, at::Tensor()};
  }
};

/// masked_select(), of which the places are known: it keeps the values and the map.
struct SelectByMap : torch::autograd::Function<SelectByMap> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& values,
                            const at::Tensor& map,
                            const at::Tensor& places) {
    context->save_for_backward({values, map, places});
    return at::index_select(values.view(-1), 0, places);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor gradient = at::zeros_like(saved[0]);
    gradient.view(-1).index_copy_(0, saved[2], gradients[0]);
    return {gradient, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

AllGatherDispatcher::AllGatherDispatcher(ShardContext& context) : TokenDispatcher(context) {
  const estimator::Plan& plan = context.plan;
  const int64_t own = plan.experts_of_rank(), first_own = context.coordinate.expert * own;
  const estimator::ParallelLayout layout(plan.parallelism);
  const auto group =
      layout.group(estimator::GroupKind::kExpertModel, layout.rank(context.coordinate));

  std::vector<std::vector<int64_t>> of_expert(static_cast<std::size_t>(own));
  std::vector<int64_t> chosen;
  for (int64_t member = 0; member < group.size(); ++member) {
    const estimator::RankCoordinate at = layout.coordinate(group.member(member));
    const ExpertRouting routing = route_in_turn(plan, at);
    if (at == context.coordinate) chosen = routing.chosen;
    auto token = routing.permuted.begin();
    for (int64_t expert = 0; expert < plan.model.num_experts; ++expert) {
      const bool is_own = expert >= first_own && expert < first_own + own;
      for (int64_t i = 0; i < routing.of_expert[expert]; ++i, ++token) {
        if (is_own) of_expert[expert - first_own].push_back(tokens_ + *token);
      }
    }
    tokens_ += routing.tokens;
  }
  std::vector<int64_t> permuted, places;
  for (int64_t expert = 0; expert < own; ++expert) {
    rows_of_own_experts_.push_back(static_cast<int64_t>(of_expert[expert].size()));
    for (const int64_t token : of_expert[expert]) {
      permuted.push_back(token);
      places.push_back(expert * tokens_ + token);
    }
  }
  make_tables(chosen, permuted, places);
}

at::Tensor AllGatherDispatcher::gathered(const at::Tensor& tokens) const {
  const Group& group = context_.groups.expert_model;
  if (!group) return tokens;
  if (!context_.framework().fused_weight_gradient) return gather_from_sequence(tokens, group);
  return GatherIntoBuffer::apply(tokens, SharedBuffer{group, context_.buffers});
}

/// [tokens of all ranks, experts] -> the same of own experts, a copy.
at::Tensor AllGatherDispatcher::of_own_experts(const at::Tensor& of_all) const {
  const int64_t own = context_.plan.experts_of_rank();
  return of_all.narrow(1, context_.coordinate.expert * own, own).contiguous();
}

DispatchedTokens AllGatherDispatcher::prepare(const at::Tensor& tokens,
                                              const RouterOutput& routed,
                                              LastTokens& last) const {
  last.map = routed.map;
  return {.rows = tokens, .weights = routed.weights, .row_map = {}, .held = {}};
}

DispatchedTokens AllGatherDispatcher::dispatch(DispatchedTokens prepared, LastTokens& last) const {
  const ModuleScope scope(context_.observer, "dispatch");
  const Group& group = context_.groups.expert_model;
  at::Tensor map = last.map;
  if (group) {
    const c10::NoGradGuard no_grad;
    map = gather_sequence(map, *group);
  }
  const at::Tensor weights =
      group ? gather_from_sequence(prepared.weights, group) : prepared.weights;
  const at::Tensor all = gathered(prepared.rows);

  DispatchedTokens dispatched;
  last.map = of_own_experts(map);
  const at::Tensor own_weights = of_own_experts(weights);
  {
    const c10::NoGradGuard no_grad;
    last.map.sum(0, /*keepdim=*/false, at::kLong).select(0, 0).item();
  }
  dispatched.row_map = make_row_map(prepared.rows, tokens_, last.map.size(1));
  last.row_map = dispatched.row_map;
  dispatched.rows =
      permute_tokens(all, permuted_, dispatched.row_map, {.buffers = context_.buffers});
  dispatched.weights =
      SelectByMap::apply(own_weights.t().contiguous(), last.map.t().contiguous(), weight_places_)
          .unsqueeze(-1);
  last.weights = dispatched.weights;
  dispatched.held = {all, weights};
  return dispatched;
}

at::Tensor AllGatherDispatcher::collect(const at::Tensor& outputs,
                                        const DispatchedTokens& dispatched) const {
  const ModuleScope scope(context_.observer, "combine");
  const at::Tensor of_all = unpermute_tokens(
      outputs, permuted_, dispatched.row_map, tokens_, {.buffers = context_.buffers});
  return context_.groups.expert_model ? of_all.to(dispatched.weights.scalar_type()) : of_all;
}

at::Tensor AllGatherDispatcher::send_back(const at::Tensor& rows) const {
  const ModuleScope scope(context_.observer, "combine");
  const Group& group = context_.groups.expert_model;
  return group ? reduce_scatter_to_sequence(rows, group) : rows;
}

at::Tensor AllGatherDispatcher::combine(const at::Tensor& rows, const DispatchedTokens&) const {
  return rows.to(scalar_type(context_.plan.training.dtype));
}

}  // namespace models
