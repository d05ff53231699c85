// What a transformer is, in Megatron-LM's words, and the presets by name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "estimator/base/fields.h"

namespace estimator {

enum class Normalization { kLayerNorm, kRmsNorm };
constexpr std::array<EnumName<Normalization>, 2> enum_names(Normalization) {
  return {{{Normalization::kLayerNorm, "LayerNorm"}, {Normalization::kRmsNorm, "RMSNorm"}}};
}

/// gelu and relu are plain MLPs of two matrices; swiglu and geglu are gated ones of three.
enum class Activation { kGelu, kRelu, kSwiglu, kGeglu };
constexpr std::array<EnumName<Activation>, 4> enum_names(Activation) {
  return {{{Activation::kGelu, "gelu"},
           {Activation::kRelu, "relu"},
           {Activation::kSwiglu, "swiglu"},
           {Activation::kGeglu, "geglu"}}};
}
constexpr bool is_gated(Activation activation) {
  return activation == Activation::kSwiglu || activation == Activation::kGeglu;
}

enum class PositionEmbedding { kLearnedAbsolute, kRope, kNone };
constexpr std::array<EnumName<PositionEmbedding>, 3> enum_names(PositionEmbedding) {
  return {{{PositionEmbedding::kLearnedAbsolute, "learned_absolute"},
           {PositionEmbedding::kRope, "rope"},
           {PositionEmbedding::kNone, "none"}}};
}

/// How a router turns its logits into weights of the experts: Megatron-LM's
/// --moe-router-score-function.
enum class RouterScore { kSoftmax, kSigmoid };
constexpr std::array<EnumName<RouterScore>, 2> enum_names(RouterScore) {
  return {{{RouterScore::kSoftmax, "softmax"}, {RouterScore::kSigmoid, "sigmoid"}}};
}

/// What keeps experts equally busy: a loss over a micro-batch, or over each of its sequences
/// (Megatron-LM's --moe-router-load-balancing-type).
enum class LoadBalancing { kAuxLoss, kSequenceAuxLoss, kNone };
constexpr std::array<EnumName<LoadBalancing>, 3> enum_names(LoadBalancing) {
  return {{{LoadBalancing::kAuxLoss, "aux_loss"},
           {LoadBalancing::kSequenceAuxLoss, "seq_aux_loss"},
           {LoadBalancing::kNone, "none"}}};
}

/// A decoder, dense or with experts. Zero in a derived field (ffn_hidden_size, num_query_groups,
/// kv_channels, moe_ffn_hidden_size) means Megatron's default, as all defaults here are
/// Megatron-LM's; `with_derived_fields` fills it in.
struct ModelConfig {
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t ffn_hidden_size = 0;  ///< 4 h, or for a gated MLP 64 * floor(8 h / 3 / 64)
  int64_t num_attention_heads = 0;
  int64_t num_query_groups = 0;  ///< key/value heads: = heads MHA, 1 MQA, between GQA
  int64_t kv_channels = 0;       ///< width of one head: hidden_size / num_attention_heads
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;
  bool tie_embeddings = true;
  Normalization normalization = Normalization::kLayerNorm;
  double norm_epsilon = 1e-5;
  Activation activation = Activation::kGelu;
  PositionEmbedding position_embedding = PositionEmbedding::kLearnedAbsolute;
  double rotary_base = 10000.0;
  bool add_bias_linear = true;
  bool add_qkv_bias = false;  ///< bias on query, key, value alone (Qwen2)
  /// MLA (DeepSeek-V2): queries, and keys and values together, are projected down to a latent and
  /// up again; a part of each head has rotary positions, whatever position_embedding says, and all
  /// heads share its key.
  bool multi_latent_attention = false;
  int64_t q_lora_rank = 0;  ///< width of the queries' latent; 0: they have none
  int64_t kv_lora_rank = 512;
  int64_t qk_head_dim = 128;         ///< of a head of query and key, without positions
  int64_t qk_pos_emb_head_dim = 64;  ///< of the same, with positions
  int64_t v_head_dim = 128;
  bool qk_layernorm = false;  ///< norms of the latents
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
  int64_t num_experts = 0;  ///< of one layer; 0: dense
  int64_t moe_router_topk = 2;
  int64_t moe_ffn_hidden_size = 0;  ///< of one expert: ffn_hidden_size
  int64_t moe_shared_expert_intermediate_size = 0;
  /// [n]: each n-th layer has experts, from the first on; else a 0 or a 1 for each layer.
  std::vector<int64_t> moe_layer_freq = {1};
  RouterScore moe_router_score_function = RouterScore::kSoftmax;
  bool moe_router_pre_softmax = false;
  int64_t moe_router_num_groups = 0;  ///< of experts, of which a token uses some; 0: no groups
  int64_t moe_router_group_topk = 0;  ///< so many
  double moe_router_topk_scaling_factor = 0;  ///< of the weights; 0: none
  LoadBalancing moe_router_load_balancing_type = LoadBalancing::kAuxLoss;
  double moe_aux_loss_coeff = 0;

  bool has_experts() const { return num_experts > 0; }
  bool has_aux_loss() const {
    return moe_aux_loss_coeff > 0 && moe_router_load_balancing_type != LoadBalancing::kNone;
  }
  /// Whether a layer, counted from 0, has experts.
  bool has_experts_in(int64_t layer) const;
  int64_t expert_layers() const;

  /// Of one head of query and key, and of value.
  int64_t key_width() const {
    return multi_latent_attention ? qk_head_dim + qk_pos_emb_head_dim : kv_channels;
  }
  int64_t value_width() const { return multi_latent_attention ? v_head_dim : kv_channels; }
};

template <class Visitor>
void visit_fields(Visitor& visit, ModelConfig& model) {
  visit("num_layers", model.num_layers, "transformer layers");
  visit("hidden_size", model.hidden_size, "width of the residual stream");
  visit("ffn_hidden_size", model.ffn_hidden_size, "width of the MLP");
  visit("num_attention_heads", model.num_attention_heads, "query heads");
  visit("num_query_groups", model.num_query_groups, "key/value heads (GQA, MQA)");
  visit("kv_channels", model.kv_channels, "width of one head");
  visit("vocab_size", model.vocab_size, "tokens in the vocabulary, unpadded");
  visit("max_position_embeddings", model.max_position_embeddings, "longest sequence");
  visit("tie_embeddings", model.tie_embeddings, "output layer shares the input embedding");
  visit("normalization", model.normalization, "LayerNorm or RMSNorm");
  visit("norm_epsilon", model.norm_epsilon, "added to the variance");
  visit("activation", model.activation, "gelu, relu, swiglu or geglu");
  visit("position_embedding", model.position_embedding, "learned_absolute, rope or none");
  visit("rotary_base", model.rotary_base, "base of the rotary angles");
  visit("add_bias_linear", model.add_bias_linear, "biases in all linear layers of the blocks");
  visit("add_qkv_bias", model.add_qkv_bias, "bias on query, key and value alone");
  visit("multi_latent_attention",
        model.multi_latent_attention,
        "MLA: keys and values, and queries, from latents (DeepSeek)");
  visit("q_lora_rank", model.q_lora_rank, "MLA: width of the queries' latent; 0: none");
  visit("kv_lora_rank", model.kv_lora_rank, "MLA: width of the latent of keys and values");
  visit("qk_head_dim", model.qk_head_dim, "MLA: width of a query's and key's head, no positions");
  visit("qk_pos_emb_head_dim",
        model.qk_pos_emb_head_dim,
        "MLA: width of its part with rotary positions, whose key all heads share");
  visit("v_head_dim", model.v_head_dim, "MLA: width of a value's head");
  visit("qk_layernorm", model.qk_layernorm, "MLA: norms of the latents");
  visit("hidden_dropout", model.hidden_dropout, "after attention, MLP and embedding");
  visit("attention_dropout", model.attention_dropout, "on the attention weights");
  visit("num_experts", model.num_experts, "experts of a layer; 0: a dense model");
  visit("moe_router_topk", model.moe_router_topk, "experts of a token");
  visit("moe_ffn_hidden_size", model.moe_ffn_hidden_size, "width of one expert");
  visit("moe_shared_expert_intermediate_size",
        model.moe_shared_expert_intermediate_size,
        "width of the shared experts together, which all tokens use; 0: none");
  visit("moe_layer_freq",
        model.moe_layer_freq,
        "[n]: each n-th layer has experts; or a 0 (dense) or 1 for each layer");
  visit("moe_router_score_function",
        model.moe_router_score_function,
        "softmax or sigmoid of the router's logits");
  visit("moe_router_pre_softmax",
        model.moe_router_pre_softmax,
        "softmax over all experts, not over the chosen ones");
  visit("moe_router_num_groups",
        model.moe_router_num_groups,
        "groups of experts, to some of which a token's are limited; 0: none");
  visit("moe_router_group_topk", model.moe_router_group_topk, "groups of a token");
  visit("moe_router_topk_scaling_factor",
        model.moe_router_topk_scaling_factor,
        "of the experts' weights; 0: none");
  visit("moe_router_load_balancing_type",
        model.moe_router_load_balancing_type,
        "aux_loss, seq_aux_loss or none");
  visit("moe_aux_loss_coeff", model.moe_aux_loss_coeff, "weight of that loss; 0: there is none");
}

struct ModelPreset {
  std::string name;
  std::vector<std::string> aliases;
  int64_t parameters = 0;  ///< published count; a test holds parameter_count() to it
  std::string source;
  ModelConfig config;
};

template <class Visitor>
void visit_fields(Visitor& visit, ModelPreset& preset) {
  visit("name", preset.name, "the name to type");
  visit("aliases", preset.aliases, "other names");
  visit("parameters", preset.parameters, "published parameter count");
  visit("source", preset.source, "where the shape comes from");
  visit("config", preset.config, "the shape");
}

const std::vector<ModelPreset>& model_presets();

/// By name or alias, any case; null when there is none.
const ModelPreset* find_model_preset(const std::string& name);

ModelConfig with_derived_fields(ModelConfig model);

/// Parameters of the whole model with `vocabulary` rows in its embedding (padded or not).
int64_t parameter_count(const ModelConfig& model, int64_t vocabulary);

/// Parameters of the attention of one layer, without the norm before it.
int64_t attention_parameter_count(const ModelConfig& model);

/// Parameters of one transformer layer, counted from 0.
int64_t layer_parameter_count(const ModelConfig& model, int64_t layer);

}  // namespace estimator
