#include "models/experts/all_to_all_dispatcher.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/item.h>
#include <ATen/ops/select.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <string>

#include "models/experts/token_permutation.h"
#include "models/layers/sequence_mappings.h"
#include "models/shard/host_work.h"
#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Chunks of rows that lie [outer][inner], to [inner][outer]; `sizes` in their present order.
struct ChunkOrder {
  std::vector<int64_t> sizes;
  int64_t inner = 1;
  bool always_copies = false;

  int64_t outer() const { return static_cast<int64_t>(sizes.size()) / inner; }
  bool are_equal() const {
    return std::all_of(sizes.begin(), sizes.end(), [&](int64_t n) { return n == sizes.front(); });
  }
  ChunkOrder reversed() const {
    ChunkOrder back{.sizes = {}, .inner = outer(), .always_copies = always_copies};
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t o = 0; o < outer(); ++o) back.sizes.push_back(sizes[o * inner + i]);
    }
    return back;
  }
};

at::Tensor transpose_chunks(const at::Tensor& rows, const ChunkOrder& order) {
  if (order.are_equal()) {
    std::vector<int64_t> shape = rows.sizes().vec();
    shape.insert(shape.begin(), {order.outer(), order.inner});
    shape[2] = order.sizes.front();
    const at::Tensor sorted = rows.view(shape).transpose(0, 1);
    // The kernel also copies what lies in its order; the operators for padded experts do not.
    return (order.always_copies ? sorted.clone(at::MemoryFormat::Contiguous) : sorted.contiguous())
        .view(rows.sizes());
  }
  const auto chunks = rows.split_with_sizes(order.sizes);
  std::vector<at::Tensor> sorted;
  for (int64_t i = 0; i < order.inner; ++i) {
    for (int64_t o = 0; o < order.outer(); ++o) sorted.push_back(chunks[o * order.inner + i]);
  }
  return at::cat(sorted);
}

/// moe_sort_chunks_by_index, which keeps a map of [rows]. In Megatron-LM one call sorts the
/// weights, too.
struct SortChunks : torch::autograd::Function<SortChunks> {
  struct Options {
    ChunkOrder order;
    bool has_experts_to_sort = true;  // several experts of its own
    std::string tuned;                // the name of the call, "" of one that is part of another
    std::shared_ptr<FrameworkBuffers> buffers;

    /// The operators that sort padded experts are recorded themselves.
    at::Tensor sorted(const at::Tensor& rows, const ChunkOrder& to) const {
      if (!to.always_copies) return transpose_chunks(rows, to);
      KernelScope kernel("te::moe_sort_chunks");
      at::Tensor result = transpose_chunks(rows, to);
      if (!tuned.empty()) kernel.moves(rows, result);
      return result;
    }
  };

  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& rows,
                            const Options& options) {
    keep(context, options);
    at::Tensor sorted = options.sorted(rows, options.order);
    if (options.tuned.empty()) return sorted;
    context->save_for_backward({as_kernel("te::moe_sort_map", {}, [&] {
      return at::empty({rows.size(0)}, rows.options().dtype(at::kInt));
    })});
    options.buffers->tune_at_first_call(options.tuned, rows.device());
    return sorted;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Options& options = kept<Options>(context);
    return {options.sorted(gradients[0].contiguous(), options.order.reversed()), at::Tensor()};
  }
};

/// Rows that arrive lie by rank, and in each rank's part by own expert; those of one own expert are
/// not sorted.
ChunkOrder order_of_arriving(const estimator::Plan& plan, const std::vector<int64_t>& sizes) {
  return {.sizes = sizes,
          .inner = plan.experts_of_rank(),
          .always_copies = !plan.training.moe_pad_expert_input_to_capacity};
}

at::Tensor sort_chunks(const at::Tensor& rows, const SortChunks::Options& options) {
  return options.has_experts_to_sort ? SortChunks::apply(rows, options) : rows;
}

}  // namespace

AllToAllDispatcher::AllToAllDispatcher(ShardContext& context)
    : TokenDispatcher(context),
      routing_(route_in_turn(context.plan, context.coordinate)),
      arriving_(arriving_rows(context, routing_.of_expert)) {
  rows_of_own_experts_ = arriving_.of_own_experts;
  const estimator::Plan& plan = context.plan;
  std::vector<int64_t> places;
  auto token = routing_.permuted.begin();
  for (int64_t expert = 0; expert < plan.model.num_experts; ++expert) {
    for (int64_t i = 0; i < routing_.of_expert[expert]; ++i) {
      places.push_back(*token++ * plan.model.num_experts + expert);
    }
  }
  make_tables(routing_.chosen, routing_.permuted, places);
}

void AllToAllDispatcher::begin_method(const std::string& method) const {
  if (context_.transformer_engine()) begin_python("MoEAlltoAllTokenDispatcher." + method);
}

/// How many tokens go where is in the mock routing; a real run reads it from the device: what it
/// sends to each rank, what arrives from each rank and of all, and what each own expert gets.
void AllToAllDispatcher::exchange_counts(const at::Tensor& map) const {
  if (context_.plan.training.moe_pad_expert_input_to_capacity) return;
  const c10::NoGradGuard no_grad;
  const at::Tensor counts = map.sum(0, /*keepdim=*/false, at::kLong);
  const Group& group = context_.groups.expert_model;
  if (!group) {
    counts.select(0, 0).item();
    return;
  }
  const int64_t own = context_.plan.experts_of_rank();
  const at::Tensor of_ranks = gather_sequence(counts, *group).view({group->size(), -1});
  const at::Tensor of_own = of_ranks.narrow(1, context_.coordinate.expert * own, own).contiguous();
  const at::Tensor sent = counts.view({-1, own}).sum(1), arriving = of_own.sum(1);
  for (const at::Tensor& read : {sent, arriving, arriving.sum(), of_own.sum(0)}) {
    read.to(at::kCPU, /*non_blocking=*/true);
  }
  arriving.select(0, 0).item();
}

/// Ranks that cut the same experts tell each other how many tokens they have, where that differs.
Parts AllToAllDispatcher::parts() const {
  return context_.plan.training.moe_pad_expert_input_to_capacity ? Parts::kOneTensor : Parts::kList;
}

at::Tensor AllToAllDispatcher::by_expert(const at::Tensor& arrived) const {
  const Group& cut = context_.groups.expert_tensor;
  const bool are_weights = arrived.dim() == 1;
  return sort_chunks(cut ? gather_from_sequence(arrived, cut, parts()) : arrived,
                     {.order = order_of_arriving(context_.plan, arriving_.from_ranks),
                      .has_experts_to_sort = context_.plan.experts_of_rank() > 1,
                      .tuned = are_weights ? "" : "sort with weights",
                      .buffers = context_.buffers});
}

DispatchedTokens AllToAllDispatcher::prepare(const at::Tensor& tokens,
                                             const RouterOutput& routed,
                                             LastTokens& last) const {
  const ModuleScope scope(context_.observer, "preprocess");
  begin_method("dispatch_preprocess");
  last.weights = routed.weights;
  last.map = routed.map;
  exchange_counts(routed.map);
  DispatchedTokens prepared;
  prepared.row_map = make_row_map(tokens, tokens.size(0), routed.map.size(1));
  last.row_map = prepared.row_map;
  prepared.rows = permute_tokens(
      tokens, permuted_, prepared.row_map, {.buffers = context_.buffers, .has_weights = true});
  prepared.weights = at::index_select(routed.weights.view(-1), 0, weight_places_);
  return prepared;
}

DispatchedTokens AllToAllDispatcher::dispatch(DispatchedTokens prepared, LastTokens&) const {
  const ModuleScope scope(context_.observer, "dispatch");
  begin_method("token_dispatch");
  const at::Tensor arrived = all_to_all(prepared.rows, arriving_.splits);
  const at::Tensor arrived_weights = all_to_all(prepared.weights, arriving_.splits);
  return {.rows = arrived,
          .weights = arrived_weights,
          .row_map = prepared.row_map,
          .held = {prepared.rows, prepared.weights, arrived, arrived_weights}};
}

DispatchedTokens AllToAllDispatcher::arrange(DispatchedTokens arrived, LastTokens&) const {
  const ModuleScope scope(context_.observer, "dispatch");
  arrived.rows = by_expert(arrived.rows);
  arrived.weights = by_expert(arrived.weights).unsqueeze(-1);
  return arrived;
}

at::Tensor AllToAllDispatcher::collect(const at::Tensor& outputs,
                                       const DispatchedTokens& dispatched) const {
  const ModuleScope scope(context_.observer, "combine");
  begin_method("token_combine");
  at::Tensor rows =
      sort_chunks(outputs,
                  {.order = order_of_arriving(context_.plan, arriving_.from_ranks).reversed(),
                   .has_experts_to_sort = context_.plan.experts_of_rank() > 1,
                   .tuned = "sort",
                   .buffers = context_.buffers});
  const Group& cut = context_.groups.expert_tensor;
  if (!cut) return rows;
  // The sum over ranks has the type of the router's weights.
  const at::Tensor of_weights = rows.to(dispatched.weights.scalar_type());
  return reduce_scatter_to_sequence(of_weights, cut, parts()).to(rows.scalar_type());
}

at::Tensor AllToAllDispatcher::send_back(const at::Tensor& rows) const {
  const ModuleScope scope(context_.observer, "combine");
  return all_to_all(rows, arriving_.splits.reversed());
}

at::Tensor AllToAllDispatcher::combine(const at::Tensor& rows,
                                       const DispatchedTokens& dispatched) const {
  const ModuleScope scope(context_.observer, "combine");
  return unpermute_tokens(
      rows, permuted_, dispatched.row_map, routing_.tokens, {.buffers = context_.buffers});
}

}  // namespace models
