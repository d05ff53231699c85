#include "models/attention.h"

#include "models/recompute.h"

namespace models {
namespace {

LinearSpec qkv_spec(const estimator::ModelConfig& model, const std::string& name) {
  const int64_t heads = model.num_attention_heads + 2 * model.num_query_groups;
  return {.name = name + ".qkv",
          .inputs = model.hidden_size,
          .outputs = heads * model.kv_channels,
          .bias = model.add_bias_linear || model.add_qkv_bias};
}

LinearSpec projection_spec(const estimator::ModelConfig& model, const std::string& name) {
  return {.name = name + ".projection",
          .inputs = model.num_attention_heads * model.kv_channels,
          .outputs = model.hidden_size,
          .bias = model.add_bias_linear};
}

}  // namespace

SelfAttention::SelfAttention(ShardContext& context,
                             ParameterStore& store,
                             const std::string& name,
                             std::shared_ptr<const CoreAttention> core,
                             std::shared_ptr<const RotaryEmbedding> rotary)
    : context_(context),
      core_(std::move(core)),
      rotary_(std::move(rotary)),
      qkv_(context, store, qkv_spec(context.plan.model, name)),
      projection_(context, store, projection_spec(context.plan.model, name)) {}

/// Packed as Megatron packs it: for each key/value group its queries, its key, its value.
SelfAttention::Heads SelfAttention::split_heads(const at::Tensor& packed) const {
  const estimator::ModelConfig& model = context_.plan.model;
  const int64_t groups = model.num_query_groups / context_.tensor_size();
  const int64_t queries = model.num_attention_heads / model.num_query_groups;
  const int64_t width = model.kv_channels;
  const int64_t sequence = packed.size(0), batch = packed.size(1);

  const at::Tensor by_group = packed.view({sequence, batch, groups, (queries + 2) * width});
  const auto parts = by_group.split_with_sizes({queries * width, width, width}, -1);
  Heads heads{parts[0].reshape({sequence, batch, groups * queries, width}), parts[1], parts[2]};
  if (rotary_) {
    heads.query = rotary_->apply(heads.query);
    heads.key = rotary_->apply(heads.key);
  }
  if (rotary_ || queries > 1) {
    // The query is a tensor of its own now; views as key and value would keep the whole packed one
    // alive. (TransformerEngine's get_qkv_layout finds no packed layout and copies them too.)
    heads.key = heads.key.contiguous();
    heads.value = heads.value.contiguous();
  }
  return heads;
}

at::Tensor SelfAttention::forward(const at::Tensor& input) const {
  Observer& observer = context_.observer;
  ModuleScope scope(observer, "self_attention");
  Heads heads = [&] {
    ModuleScope qkv(observer, "qkv");
    return split_heads(qkv_.forward(input));
  }();

  const auto attend = [core = core_, &observer](const torch::autograd::variable_list& inputs) {
    ModuleScope core_scope(observer, "core_attention");
    return core->forward(inputs[0], inputs[1], inputs[2]);
  };
  torch::autograd::variable_list qkv = {heads.query, heads.key, heads.value};
  heads = {};
  const bool recompute = context_.plan.training.recompute == estimator::Recompute::kSelective;
  const at::Tensor attended = recompute ? checkpoint(attend, qkv, observer) : attend(qkv);
  qkv.clear();

  ModuleScope projection(observer, "projection");
  return projection_.forward(attended);
}

}  // namespace models
