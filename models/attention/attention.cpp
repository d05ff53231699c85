#include "models/attention/attention.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "estimator/plan/frameworks.h"
#include "models/layers/sequence_mappings.h"
#include "models/shard/host_work.h"

namespace models {
namespace {

using estimator::AdapterTarget;

/// unbind(), whose parts may be written to: autograd refuses that for views.
struct Unstack : torch::autograd::Function<Unstack> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext*,
                                                const at::Tensor& stacked) {
    torch::autograd::variable_list parts;
    for (const at::Tensor& view : stacked.unbind(0)) {
      parts.push_back(
          at::empty({0}, stacked.options())
              .set_(stacked.storage(), view.storage_offset(), view.sizes(), view.strides()));
    }
    return parts;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {at::stack(gradients)};
  }
};

LinearSpec qkv_spec(const estimator::ModelConfig& model, const std::string& name) {
  const int64_t heads = model.num_attention_heads + 2 * model.num_query_groups;
  return {.name = name + ".linear_qkv",
          .inputs = model.hidden_size,
          .outputs = heads * model.kv_channels,
          .bias = model.has_qkv_bias(),
          .group_rows = {model.num_attention_heads / model.num_query_groups * model.kv_channels,
                         model.kv_channels,
                         model.kv_channels},
          .after_norm = true,
          .target = AdapterTarget::kQueryKeyValue};
}

/// A product of its own.
struct SeparateProduct {
  const char* part;
  AdapterTarget target;
  int64_t first, count;  ///< its place in a packed group
};

LinearSpec separate_spec(const estimator::ModelConfig& model,
                         const std::string& name,
                         const SeparateProduct& product,
                         bool at_mark) {
  const int64_t queries = model.num_attention_heads / model.num_query_groups;
  return {.name = name + "." + product.part,
          .inputs = model.hidden_size,
          .outputs = model.num_query_groups * product.count * model.kv_channels,
          .bias = model.has_qkv_bias(),
          .whole_input = true,
          .at_mark = at_mark,
          .packed = PackedRows{.name = name + ".linear_qkv.weight",
                               .blocks = model.num_query_groups,
                               .parts = queries + 2,
                               .first = product.first,
                               .count = product.count},
          .target = product.target};
}

std::vector<ColumnParallelLinear> make_qkv(ShardContext& context,
                                           ParameterStore& store,
                                           const std::string& name) {
  const estimator::ModelConfig& model = context.plan.model;
  if (!context.framework().separate_products) return {{context, store, qkv_spec(model, name)}};
  const int64_t queries = model.num_attention_heads / model.num_query_groups;
  const bool at_mark = context.framework().norms_last;
  const auto made = [&](const SeparateProduct& product) -> ColumnParallelLinear {
    return {context, store, separate_spec(model, name, product, at_mark)};
  };
  return {made({"query", AdapterTarget::kQuery, 0, queries}),
          made({"key", AdapterTarget::kKey, queries, 1}),
          made({"value", AdapterTarget::kValue, queries + 1, 1})};
}

}  // namespace

LinearSpec projection_spec(const ShardContext& context, const std::string& name) {
  const estimator::ModelConfig& model = context.plan.model;
  return {.name = name + ".linear_proj",
          .inputs = model.num_attention_heads * model.value_width(),
          .outputs = model.hidden_size,
          .bias = model.has_projection_bias(),
          .caller_sums = model.parallel_residual,
          .input_is_kept = true,
          .at_mark = context.framework().projection_first || context.framework().norms_last,
          .target = AdapterTarget::kProjection};
}

SelfAttention::SelfAttention(ShardContext& context,
                             ParameterStore& store,
                             const std::string& name,
                             std::shared_ptr<const CoreAttention> core,
                             std::shared_ptr<const RotaryEmbedding> rotary)
    : context_(context), core_(std::move(core)), rotary_(std::move(rotary)) {
  const auto make_projection = [&] {
    projection_.emplace(context, store, projection_spec(context, name));
  };
  const estimator::ModelConfig& shape = context.plan.model;
  if (shape.has_sinks()) {
    sink_ = &store.add({.name = name + ".core_attention.softmax_offset",
                        .full_shape = {shape.num_attention_heads},
                        .sharded_dim = 0,
                        .initial_value = InitialValue::kZeros});
  }
  if (context.framework().projection_first) make_projection();
  qkv_ = make_qkv(context, store, name);
  if (!projection_) make_projection();
  if (shape.qk_layernorm) {
    query_norm_.emplace(
        Norm::of_heads(context, store, name + ".q_layernorm", shape.query_norm_width()));
    key_norm_.emplace(
        Norm::of_heads(context, store, name + ".k_layernorm", shape.key_norm_width()));
  }
}

bool SelfAttention::shares_groups() const {
  return context_.plan.model.num_query_groups < context_.tensor_size();
}

/// The product's columns are cut evenly, through a group's: all are gathered, one group is kept
/// (get_query_key_value_tensors in megatron/core/transformer/attention.py).
at::Tensor SelfAttention::own_groups(const at::Tensor& packed) const {
  if (!shares_groups()) return packed;
  const at::Tensor all = gather_last_dim(packed, context_.groups.tensor);
  const int64_t groups = context_.plan.model.num_query_groups;
  const int64_t width = all.size(-1) / groups;
  const int64_t ranks_of_group = context_.tensor_size() / groups;
  return all.narrow(-1, context_.coordinate.tensor / ranks_of_group * width, width);
}

at::Tensor SelfAttention::own_queries(const at::Tensor& of_group) const {
  if (!shares_groups()) return of_group;
  const int64_t ranks_of_group = context_.tensor_size() / context_.plan.model.num_query_groups;
  const int64_t heads = of_group.size(2) / ranks_of_group;
  return of_group.narrow(2, context_.coordinate.tensor % ranks_of_group * heads, heads);
}

/// Else query, key and value are read where the product wrote them.
bool SelfAttention::separates_heads() const {
  const estimator::ModelConfig& model = context_.plan.model;
  return rotary_ || query_norm_ || model.num_attention_heads > model.num_query_groups;
}

/// What Megatron-LM recomputes keeps the views that it is given, and with them the whole product
/// (_checkpointed_attention_forward in attention.py).
bool SelfAttention::recomputes_views() const {
  return context_.framework().transformer_engine &&
         estimator::recomputes(context_.plan, estimator::RecomputeModule::kCoreAttention);
}

/// TransformerEngine copies key and value where it finds no layout of all three in one
/// (get_qkv_layout): inside of what is recomputed.
bool SelfAttention::recomputes_copies() const {
  return context_.transformer_engine() && recomputes_views();
}

/// Whether Megatron-LM's own layers run, not TransformerEngine's.
bool SelfAttention::has_own_layers() const {
  return context_.framework().transformer_engine && !context_.transformer_engine();
}

/// Megatron-LM's own layers multiply with the value where the packed product has it, and autograd
/// keeps all of that; where heads share groups, they repeat it first (DotProductAttention.forward
/// in megatron/core/transformer/dot_product_attention.py).
bool SelfAttention::keeps_packed_value() const {
  const estimator::ModelConfig& model = context_.plan.model;
  return has_own_layers() && model.num_attention_heads == model.num_query_groups;
}

/// The kernels read rows that lie one after the other. PyTorch's norms of Megatron-LM's own layers
/// keep what they are given: a view of the whole product (WrappedTorchNorm in torch_norm.py).
SelfAttention::Heads SelfAttention::normalized(Heads heads) const {
  if (!query_norm_) return heads;
  const auto norm = [this](const char* name, const Norm& of_heads, const at::Tensor& input) {
    ModuleScope scope(context_.observer, name);
    const at::Tensor rows = has_own_layers() ? input : input.contiguous();
    if (!context_.plan.model.qk_layernorm_whole) return of_heads.forward(rows);
    return of_heads.forward(rows.flatten(-2)).view_as(rows);
  };
  heads.query = norm("q_layernorm", *query_norm_, heads.query);
  heads.key = norm("k_layernorm", *key_norm_, heads.key);
  return heads;
}

/// By their positions, where those are not learned.
SelfAttention::Heads SelfAttention::turned(Heads heads) const {
  if (rotary_) {
    heads.query = rotary_->apply(heads.query);
    heads.key = rotary_->apply(heads.key);
  }
  return heads;
}

/// Packed as Megatron packs it: for each key/value group its queries, its key, its value.
SelfAttention::Heads SelfAttention::split_heads(const at::Tensor& product) const {
  const estimator::ModelConfig& model = context_.plan.model;
  const at::Tensor packed = own_groups(product);
  const int64_t groups = std::max<int64_t>(1, model.num_query_groups / context_.tensor_size());
  const int64_t queries = model.num_attention_heads / model.num_query_groups;
  const int64_t width = model.kv_channels;
  const int64_t sequence = packed.size(0), batch = packed.size(1);

  const at::Tensor by_group = packed.view({sequence, batch, groups, (queries + 2) * width});
  if (rotary_ && queries == 1 && context_.framework().query_keeps_packed) return unstack(packed);
  const auto parts = by_group.split_with_sizes({queries * width, width, width}, -1);
  Heads heads{own_queries(parts[0].reshape({sequence, batch, groups * queries, width})),
              parts[1],
              parts[2],
              {}};
  heads = normalized(std::move(heads));
  if (context_.framework().holds_split_heads) {  // qkv_output in Attention.forward of attention.py
    heads.as_product = {heads.query, heads.key, heads.value};
  }
  heads = turned(std::move(heads));
  if (separates_heads() && !recomputes_views()) {
    // Views would keep the whole packed tensor alive. The query is a tensor of its own by now but
    // where a rank has one group, which TransformerEngine copies, too.
    if (context_.transformer_engine()) heads.query = heads.query.contiguous();
    heads.key = heads.key.contiguous();
    if (!keeps_packed_value()) heads.value = heads.value.contiguous();
  }
  return heads;
}

SelfAttention::Heads SelfAttention::separate_heads(const at::Tensor& input) const {
  const at::Tensor whole = whole_input(context_, input);
  const auto product = [&](const ColumnParallelLinear& layer) {
    return layer.forward(whole).unflatten(-1, at::IntArrayRef{-1, context_.plan.model.kv_channels});
  };
  if (context_.torchtitan_qwen3() && context_.has_dtensors()) {  // use_local_output=False
    constexpr int kOfRotaryAndAttention = 2 * 5 + 1;
    dispatch_on_host(kOfRotaryAndAttention);
  }
  return turned(normalized({product(qkv_[0]), product(qkv_[1]), product(qkv_[2])}));
}

/// As nanotron: query, key and value are copied into one [3, b, s, heads, width]; the query is
/// turned where it lies there, so that saving it saves all three; key and value are joined, and
/// copied once more.
SelfAttention::Heads SelfAttention::unstack(const at::Tensor& packed) const {
  const int64_t groups = context_.plan.model.num_query_groups / context_.tensor_size();
  const at::Tensor stacked =
      packed.view({packed.size(0), packed.size(1), groups, 3, context_.plan.model.kv_channels})
          .permute({3, 1, 0, 2, 4})
          .contiguous();
  const torch::autograd::variable_list parts = Unstack::apply(stacked);  // [b, s, heads, width]
  const at::Tensor query = rotary_->apply_in_place(parts[0].transpose(0, 1));
  const at::Tensor key = rotary_->apply(parts[1].transpose(0, 1));
  const at::Tensor both = at::cat({key.transpose(0, 1), parts[2]}, 2)
                              .unflatten(2, at::IntArrayRef{2, groups})
                              .permute({2, 0, 1, 3, 4})
                              .contiguous();
  return {query, both.select(0, 0).transpose(0, 1), both.select(0, 1).transpose(0, 1), {}};
}

/// Until Attention.forward of attention.py returns, in the order in which it then lets them go.
/// TransformerEngine's copy of the value is none of them.
torch::autograd::variable_list SelfAttention::held_by_variables(Heads heads) const {
  torch::autograd::variable_list held;
  if (!context_.framework().holds_split_heads) return held;
  held.push_back(std::move(heads.key));
  std::move(heads.as_product.begin(), heads.as_product.end(), std::back_inserter(held));
  held.push_back(std::move(heads.query));
  return held;
}

at::Tensor SelfAttention::forward(at::Tensor input) const {
  Observer& observer = context_.observer;
  ModuleScope scope(observer, "self_attention");
  Heads heads = [&] {
    ModuleScope qkv(observer, "linear_qkv");
    if (qkv_.size() > 1) return separate_heads(input);
    const at::Tensor product = qkv_[0].forward(input);
    input = at::Tensor();
    return split_heads(product);
  }();

  torch::autograd::variable_list qkv = {heads.query, heads.key, heads.value};
  torch::autograd::variable_list held = held_by_variables(std::move(heads));
  held.push_back(run_core_attention(context_,
                                    core_,
                                    std::move(qkv),
                                    separates_heads() && recomputes_copies(),
                                    sink_ ? sink_->value : at::Tensor()));

  ModuleScope projection(observer, "linear_proj");
  return projection_->forward(held.back());
}

}  // namespace models
