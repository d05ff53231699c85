#include "estimator/compute/model_flops.h"

#include <utility>
#include <vector>

#include "estimator/plan/adapters.h"
#include "estimator/plan/frameworks.h"

namespace estimator {
namespace {

/// Multiply-adds of one token in the attention's own products, forward.
double attention_linear_products(const ModelConfig& model) {
  const auto hidden = static_cast<double>(model.hidden_size);
  const auto heads = static_cast<double>(model.num_attention_heads);
  const auto key = static_cast<double>(model.key_width());
  const auto value = static_cast<double>(model.value_width());
  if (!model.multi_latent_attention) {
    const auto groups = static_cast<double>(model.num_query_groups);
    return hidden * (2 * heads * key + 2 * groups * key);
  }
  const auto latent = static_cast<double>(model.kv_lora_rank);
  const auto query_latent = static_cast<double>(model.q_lora_rank);
  const auto without_positions = static_cast<double>(model.qk_head_dim);
  // The ones are the latents' norms.
  const double query =
      query_latent > 0 ? query_latent * (hidden + heads * key + 1) : hidden * heads * key;
  const double key_value = latent * (hidden + heads * (without_positions + value) + 1) +
                           hidden * static_cast<double>(model.qk_pos_emb_head_dim);
  return query + key_value + heads * value * hidden;
}

/// Multiply-adds of one token from the latents to queries, keys and values; without a latent,
/// queries are projected from the layer's input.
double latent_up_products(const ModelConfig& model) {
  const int64_t of_query = model.q_lora_rank > 0 ? model.q_lora_rank : model.hidden_size;
  return static_cast<double>(
      model.num_attention_heads *
      (of_query * model.key_width() + model.kv_lora_rank * (model.qk_head_dim + model.v_head_dim)));
}

/// Columns by which the MLP of a layer multiplies a token: of a mixture of experts those of the
/// token's own and of the shared ones. Routers are left out, as Megatron-LM does
/// (num_floating_point_operations in megatron/training/training.py).
int64_t mlp_columns(const ModelConfig& model, bool experts) {
  const int64_t width = experts ? model.moe_router_topk * model.moe_ffn_hidden_size +
                                      model.moe_shared_expert_intermediate_size
                                : model.ffn_hidden_size;
  return width * (is_gated(model.activation) ? 3 : 2);
}

double all_mlp_columns(const ModelConfig& model) {
  const int64_t experts = model.expert_layers();
  return static_cast<double>((model.all_layers() - experts) * mlp_columns(model, false) +
                             experts * mlp_columns(model, true));
}

/// One forward of a layer for all tokens of a step.
struct LayerFlops {
  double core_attention = 0;
  double layer = 0;
  double prediction = 0;  ///< what a layer of multi-token prediction has before and after it
};

/// What a layer runs again where the outputs of listed operators are kept: see
/// models/shard/output_keeper.h. The products of shared experts are listed; the grouped ones of the
/// others are not, and all run again. Routers are left out.
double unlisted_flops(const Plan& plan, const LayerFlops& forward, bool experts) {
  struct Product {
    int64_t columns;
    bool bias;
  };
  const ModelConfig& m = plan.model;
  const int64_t queries = m.num_attention_heads * m.kv_channels;
  const int64_t keys = m.num_query_groups * m.kv_channels;
  const bool qkv_bias = m.has_qkv_bias();
  const int64_t matrices = is_gated(m.activation) ? 3 : 2;
  std::vector<Product> products = {
      {queries, qkv_bias}, {keys, qkv_bias}, {keys, qkv_bias}, {queries, m.has_projection_bias()}};
  const int64_t width = experts ? m.moe_shared_expert_intermediate_size : m.ffn_hidden_size;
  if (width > 0) products.insert(products.end(), matrices, {width, m.has_mlp_bias()});
  int64_t columns = experts ? m.moe_router_topk * m.moe_ffn_hidden_size * matrices : 0;
  int64_t number = 0;
  for (const Product& product : products) {
    const bool kept = !product.bias && ++number % 2 == 1;
    if (!kept) columns += product.columns;
  }
  const double attention =
      plan.training.attention == Attention::kUnfused ? forward.core_attention : 0;
  return attention + 2 * static_cast<double>(plan.tokens_per_step() * m.hidden_size) *
                         static_cast<double>(columns);
}

/// What Megatron-LM's selective recompute runs again in a layer with or without experts. Experts
/// inside of a recomputed mixture run again with it, and once more if they are recomputed as well.
double module_flops(const Plan& plan, const LayerFlops& forward, bool experts) {
  const ModelConfig& m = plan.model;
  const auto tokens = static_cast<double>(plan.tokens_per_step());
  const auto columns = [&](int64_t number) {
    return 2 * tokens * static_cast<double>(m.hidden_size * number);
  };
  const int64_t shared = m.moe_shared_expert_intermediate_size * (is_gated(m.activation) ? 3 : 2);
  const std::pair<RecomputeModule, double> modules[] = {
      {RecomputeModule::kCoreAttention, forward.core_attention},
      {RecomputeModule::kLatentUp, 2 * tokens * latent_up_products(m)},
      {experts ? RecomputeModule::kMoe : RecomputeModule::kMlp, columns(mlp_columns(m, experts))},
      {RecomputeModule::kSharedExperts, experts ? columns(shared) : 0}};
  double again = 0;
  for (const auto& [module, flops] : modules) {
    if (recomputes(plan, module)) again += flops;
  }
  return again;
}

double layer_flops_again(const Plan& plan, const LayerFlops& forward, const LayerNumber& layer) {
  switch (recomputed(plan, layer)) {
    case Recomputed::kNothing:
      return 0;
    case Recomputed::kModules:
      return module_flops(plan, forward, plan.model.has_experts_in(layer.of_model));
    case Recomputed::kUnlistedOperators:
      return unlisted_flops(plan, forward, plan.model.has_experts_in(layer.of_model));
    case Recomputed::kLayer:
      break;
  }
  return forward.layer + (layer.of_model < plan.model.num_layers ? 0 : forward.prediction);
}

double recomputed_flops(const Plan& plan, const LayerFlops& forward) {
  double again = 0;
  LayerNumber layer;
  const std::vector<int64_t> pieces = plan.layers_of_virtual_stages();
  const int64_t stages = plan.parallelism.pipeline;
  std::vector<int64_t> layers_of_rank(static_cast<std::size_t>(stages));
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    int64_t& of_rank = layers_of_rank[piece % layers_of_rank.size()];
    const bool is_last = piece + 1 == pieces.size();
    const int64_t layers = pieces[piece] + (is_last ? plan.model.mtp_num_layers : 0);
    layer.of_rank = of_rank;
    layer.of_chunk = 0;
    for (; layer.of_chunk < layers; layer = layer.after(1)) {
      again += layer_flops_again(plan, forward, layer);
    }
    of_rank += layers;
  }
  return again;
}

}  // namespace

StepFlops step_flops(const Plan& plan) {
  const ModelConfig& model = plan.model;
  const auto tokens = static_cast<double>(plan.tokens_per_step());
  const auto sequence = static_cast<double>(plan.sequence_length());
  const auto hidden = static_cast<double>(model.hidden_size);
  const auto widths =
      static_cast<double>(model.num_attention_heads * (model.key_width() + model.value_width()));

  // Forward passes only; one token multiplies each weight once.
  const double attention_linear = 2 * tokens * attention_linear_products(model);
  const double core_attention = 2 * tokens * sequence * widths / 2;  // QK^T and PV, causal
  const double logits = 2 * tokens * hidden * static_cast<double>(plan.padded_vocab_size());
  const auto layers = static_cast<double>(model.all_layers());
  const double all_layers =
      layers * (attention_linear + core_attention) + 2 * tokens * hidden * all_mlp_columns(model);
  // Three norms and the projection, as Megatron-LM counts them.
  const double prediction = 2 * tokens * (3 * hidden + 2 * hidden * hidden);
  const auto predictions = static_cast<double>(model.mtp_num_layers);

  const double forward = all_layers + predictions * prediction + (1 + predictions) * logits;
  // A weight that does not change has no gradient: its product runs once more, not twice.
  const double unchanged = forward - layers * core_attention;
  const double forward_and_backward =
      plan.training.has_adapters()
          ? 3 * forward - unchanged +
                3 * 2 * tokens * static_cast<double>(adapter_parameter_count(plan))
          : 3 * forward;
  const double full_attention = forward_and_backward + 3 * layers * core_attention;
  const double again = recomputed_flops(
      plan,
      {.core_attention = core_attention, .layer = all_layers / layers, .prediction = prediction});
  return {forward_and_backward, full_attention, forward_and_backward + again};
}

}  // namespace estimator
