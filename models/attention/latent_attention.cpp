#include "models/attention/latent_attention.h"

#include "estimator/plan/frameworks.h"
#include "models/layers/recompute.h"
#include "models/layers/sequence_mappings.h"

namespace models {
namespace {

using torch::autograd::variable_list;

/// [s, b, heads * width] -> [s, b, heads, width], a view.
at::Tensor by_head(const at::Tensor& packed, int64_t width) {
  return packed.view({packed.size(0), packed.size(1), -1, width});
}

LinearSpec query_up_spec(const estimator::ModelConfig& model, const std::string& name) {
  return {.name = name + ".linear_q_up_proj",
          .inputs = model.q_lora_rank > 0 ? model.q_lora_rank : model.hidden_size,
          .outputs = model.num_attention_heads * model.key_width()};
}

LinearSpec key_value_up_spec(const estimator::ModelConfig& model, const std::string& name) {
  return {.name = name + ".linear_kv_up_proj",
          .inputs = model.kv_lora_rank,
          .outputs = model.num_attention_heads * (model.qk_head_dim + model.v_head_dim)};
}

/// The norm's output is freed where the norm runs again: what reads it keeps it, and nothing in
/// fewer bits (set_for_recompute_input_layernorm).
bool norm_runs_again(const ShardContext& context) {
  return estimator::recomputes(context.plan, estimator::RecomputeModule::kNorms);
}

LinearSpec key_value_down_spec(const ShardContext& context, const std::string& name) {
  const estimator::ModelConfig& model = context.plan.model;
  return {.name = name + ".linear_kv_down_proj",
          .inputs = model.hidden_size,
          .outputs = model.kv_lora_rank + model.qk_pos_emb_head_dim,
          .duplicated = true,
          .input_is_kept = norm_runs_again(context)};
}

std::optional<ColumnParallelLinear> make_query_down(ShardContext& context,
                                                    ParameterStore& store,
                                                    const std::string& name) {
  const estimator::ModelConfig& model = context.plan.model;
  if (model.q_lora_rank == 0) return std::nullopt;
  return ColumnParallelLinear(context,
                              store,
                              {.name = name + ".linear_q_down_proj",
                               .inputs = model.hidden_size,
                               .outputs = model.q_lora_rank,
                               .duplicated = true,
                               .input_is_kept = norm_runs_again(context)});
}

std::optional<Norm> make_norm(ShardContext& context,
                              ParameterStore& store,
                              const std::string& name,
                              int64_t width) {
  if (!context.plan.model.qk_layernorm || width == 0) return std::nullopt;
  return Norm(context, store, name, width);
}

}  // namespace

LatentAttention::LatentAttention(ShardContext& context,
                                 ParameterStore& store,
                                 const std::string& name,
                                 std::shared_ptr<const CoreAttention> core)
    : context_(context),
      core_(std::move(core)),
      projection_(context, store, projection_spec(context, name)),
      query_down_(make_query_down(context, store, name)),
      query_norm_(make_norm(context, store, name + ".q_layernorm", context.plan.model.q_lora_rank)),
      query_up_(context, store, query_up_spec(context.plan.model, name)),
      key_value_down_(context, store, key_value_down_spec(context, name)),
      key_value_norm_(
          make_norm(context, store, name + ".kv_layernorm", context.plan.model.kv_lora_rank)),
      key_value_up_(context, store, key_value_up_spec(context.plan.model, name)),
      rotary_(context) {}

template <class Module>
at::Tensor LatentAttention::in_scope(const char* name,
                                     const Module& module,
                                     const at::Tensor& input) const {
  ModuleScope scope(context_.observer, name);
  return module.forward(input);
}

/// Of the queries [s or s/t, b, q_lora_rank or h], of keys and values [s or s/t, b, kv_lora_rank],
/// and the shared key [s, b, qk_pos_emb_head_dim].
variable_list LatentAttention::latents(const at::Tensor& input) const {
  const estimator::ModelConfig& model = context_.plan.model;
  const at::Tensor query =
      query_down_ ? in_scope("linear_q_down_proj", *query_down_, input) : input;
  ModuleScope scope(context_.observer, "linear_kv_down_proj");
  const auto parts = key_value_down_.forward(input).split_with_sizes(
      {model.kv_lora_rank, model.qk_pos_emb_head_dim}, -1);
  const bool gather = context_.sequence_parallel() && context_.groups.tensor;
  const at::Tensor shared_key =
      gather ? gather_from_sequence(parts[1], context_.groups.tensor) : parts[1];
  return {query, parts[0], shared_key};
}

/// Of the latents: norms, up projections and positions.
variable_list LatentAttention::heads(variable_list latent) const {
  const estimator::ModelConfig& model = context_.plan.model;
  if (query_norm_) latent[0] = in_scope("q_layernorm", *query_norm_, latent[0]);
  const at::Tensor query = in_scope("linear_q_up_proj", query_up_, latent[0]);
  // TransformerEngine's layers copy an input that is not contiguous (prepare_forward in
  // transformer_engine/pytorch/module/base.py).
  latent[1] = latent[1].contiguous();
  if (key_value_norm_) latent[1] = in_scope("kv_layernorm", *key_value_norm_, latent[1]);
  const at::Tensor key_value = in_scope("linear_kv_up_proj", key_value_up_, latent[1]);
  ModuleScope scope(context_.observer, "rotary");
  return rotary_.apply(by_head(query, model.key_width()),
                       by_head(key_value, model.qk_head_dim + model.v_head_dim),
                       latent[2]);
}

at::Tensor LatentAttention::forward(at::Tensor input) const {
  ModuleScope scope(context_.observer, "self_attention");
  rotary_.prepare();
  const auto up = [this](const variable_list& latent) { return heads(latent); };
  const bool discards = estimator::recomputes(context_.plan, estimator::RecomputeModule::kLatentUp);
  DiscardedOutputs discarded;
  variable_list qkv =
      discards ? discarded.run(up, latents(input), context_.observer) : heads(latents(input));
  // By variables of MultiLatentAttention.forward, until it returns.
  const variable_list held = context_.framework().holds_split_heads ? qkv : variable_list();
  const at::Tensor attended = run_core_attention(context_, core_, std::move(qkv));
  if (discards) discarded.discard(attended);
  return in_scope("linear_proj", projection_, attended);
}

}  // namespace models
