// The description of a transformer model, in Megatron-LM's words, and the presets by name.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/enum_names.h"

namespace estimator {

enum class Normalization { kLayerNorm, kRmsNorm };
constexpr std::array<EnumName<Normalization>, 2> enum_names(Normalization) {
  return {{{Normalization::kLayerNorm, "LayerNorm"}, {Normalization::kRmsNorm, "RMSNorm"}}};
}

/// The parameters of norms: all that the norm has, a weight without a bias (Cohere), or none
/// (OLMo).
enum class NormParameters { kAll, kWeight, kNone };
constexpr std::array<EnumName<NormParameters>, 3> enum_names(NormParameters) {
  return {{{NormParameters::kAll, "all"},
           {NormParameters::kWeight, "weight"},
           {NormParameters::kNone, "none"}}};
}

/// Where attention and MLP have their norms: on what they read, on what they give before it is
/// added (OLMo 2), or on both (GLM-4 of 2025).
enum class NormPosition { kBefore, kAfter, kBoth };
constexpr std::array<EnumName<NormPosition>, 3> enum_names(NormPosition) {
  return {{{NormPosition::kBefore, "before"},
           {NormPosition::kAfter, "after"},
           {NormPosition::kBoth, "both"}}};
}

/// gelu, gelu_new, relu and squared_relu are plain MLPs of two matrices; swiglu, geglu and
/// quick_geglu (of x times the sigmoid of 1.702 x) are gated ones of three. gelu_new is GPT-2's in
/// transformers (NewGELUActivation in its activations.py): it is made of several operators, where
/// other frameworks have one kernel.
enum class Activation { kGelu, kGeluNew, kRelu, kSquaredRelu, kSwiglu, kGeglu, kQuickGeglu };
constexpr std::array<EnumName<Activation>, 7> enum_names(Activation) {
  return {{{Activation::kGelu, "gelu"},
           {Activation::kGeluNew, "gelu_new"},
           {Activation::kRelu, "relu"},
           {Activation::kSquaredRelu, "squared_relu"},
           {Activation::kSwiglu, "swiglu"},
           {Activation::kGeglu, "geglu"},
           {Activation::kQuickGeglu, "quick_geglu"}}};
}
constexpr bool is_gated(Activation activation) {
  return activation == Activation::kSwiglu || activation == Activation::kGeglu ||
         activation == Activation::kQuickGeglu;
}

/// Over what the softmax of attention is: the scores of a query, or one learned number more of each
/// head, which has no value (a sink, gpt-oss): Megatron-LM's --softmax-type.
enum class SoftmaxType { kVanilla, kLearnable };
constexpr std::array<EnumName<SoftmaxType>, 2> enum_names(SoftmaxType) {
  return {{{SoftmaxType::kVanilla, "vanilla"}, {SoftmaxType::kLearnable, "learnable"}}};
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

/// What keeps experts equally busy: an auxiliary loss over a micro-batch or over each of its
/// sequences, or Sinkhorn's assignment (Megatron-LM's --moe-router-load-balancing-type).
enum class LoadBalancing { kAuxLoss, kSequenceAuxLoss, kSinkhorn, kNone };
constexpr std::array<EnumName<LoadBalancing>, 4> enum_names(LoadBalancing) {
  return {{{LoadBalancing::kAuxLoss, "aux_loss"},
           {LoadBalancing::kSequenceAuxLoss, "seq_aux_loss"},
           {LoadBalancing::kSinkhorn, "sinkhorn"},
           {LoadBalancing::kNone, "none"}}};
}

/// What layers of transformers' models have, and those of Megatron-LM and TorchTitan have not.
struct LayerVariant {
  const char* what;  ///< "norms over all heads"
  const char* key;   ///< of the model, that asks for it
};

/// A decoder, dense or with experts. All defaults are Megatron-LM's. Zero in a derived field
/// (ffn_hidden_size, num_query_groups, kv_channels, moe_ffn_hidden_size) means Megatron-LM's
/// default, which with_derived_fields() fills in.
struct ModelConfig {
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t ffn_hidden_size = 0;  ///< default: 4 h, or for a gated MLP 64 * floor(8 h / 3 / 64)
  int64_t num_attention_heads = 0;
  int64_t num_query_groups = 0;  ///< key/value heads: all heads for MHA, 1 for MQA, else GQA
  int64_t kv_channels = 0;       ///< width of one head; default: hidden_size / num_attention_heads
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;
  bool tie_embeddings = true;
  Normalization normalization = Normalization::kLayerNorm;
  NormParameters norm_parameters = NormParameters::kAll;
  NormPosition norm_position = NormPosition::kBefore;
  /// An RMSNorm that is made of operators multiplies by its weight in fp32 (Gemma, OLMo 2), not in
  /// the type of its input (Llama).
  bool norm_weight_in_fp32 = false;
  double norm_epsilon = 1e-5;
  Activation activation = Activation::kGelu;
  double activation_func_clamp_value = 0;  ///< both halves of a gated MLP are cut at it; 0: nowhere
  double glu_linear_offset = 0;            ///< is added to the half that has no function (gpt-oss)
  PositionEmbedding position_embedding = PositionEmbedding::kLearnedAbsolute;
  double rotary_percent = 1;  ///< part of each head with rotary positions; the rest has none
  double rotary_base = 10000.0;
  double rotary_base_in_window = 0;  ///< of layers with a window (Gemma 3); 0: that of the others
  /// Layers without rotary positions: [n] means each n-th one (SmolLM3); else it has a 1 (without)
  /// or a 0 for each layer. [0]: none.
  std::vector<int64_t> no_rope_freq = {0};
  int64_t sliding_window = 0;  ///< tokens, with its own, that a token attends to; 0: all before it
  /// Layers without the window: [n] means each n-th one (Gemma 2 and 3); else it has a 1 (with) or
  /// a 0 for each layer. [0]: none.
  std::vector<int64_t> window_attn_skip_freq = {0};
  bool add_bias_linear = true;
  bool add_qkv_bias = false;  ///< bias on query, key, value alone (Qwen2)
  /// One product makes query, key and value in transformers (GPT-2, GPT-NeoX, Phi-3).
  bool packed_qkv = false;
  bool add_attention_bias = false;     ///< bias on all products of attention, none on the MLP's
  bool add_mlp_bias = false;           ///< bias on the MLP's products, none on those of attention
  bool add_output_bias = false;        ///< bias on the output layer (Phi-2)
  double final_logit_softcapping = 0;  ///< logits are this times a tanh (Gemma 2); 0: they are not
  /// Attention and MLP of a layer read the same input, and are added to it together (GPT-J,
  /// GPT-NeoX).
  bool parallel_residual = false;
  bool tied_layernorm =
      false;  ///< with parallel_residual: both read the output of one norm (GPT-J)
  /// MLA (DeepSeek-V2): queries are projected down to one latent, keys and values together to
  /// another, and both are projected up again. A part of each head has rotary positions, whatever
  /// position_embedding says; all heads share the key of this part.
  bool multi_latent_attention = false;
  int64_t q_lora_rank = 0;  ///< width of the queries' latent; 0: queries have no latent
  int64_t kv_lora_rank = 512;
  int64_t qk_head_dim = 128;         ///< width of a query's or key's head without positions
  int64_t qk_pos_emb_head_dim = 64;  ///< width of the part of it with rotary positions
  int64_t v_head_dim = 128;
  /// Queries and keys have norms over the width of a head; in MLA the latents have norms.
  bool qk_layernorm = false;
  /// These norms are over all heads of a token together (OLMo 2), not over each head.
  bool qk_layernorm_whole = false;
  SoftmaxType softmax_type = SoftmaxType::kVanilla;
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
  int64_t num_experts = 0;  ///< of one layer; 0: dense
  int64_t moe_router_topk = 2;
  int64_t moe_ffn_hidden_size = 0;  ///< width of one expert; default: ffn_hidden_size
  int64_t moe_shared_expert_intermediate_size = 0;
  /// [n] means that each n-th layer has experts, from the first layer on; else it has a 0 (dense)
  /// or a 1 (experts) for each layer.
  std::vector<int64_t> moe_layer_freq = {1};
  RouterScore moe_router_score_function = RouterScore::kSoftmax;
  bool moe_router_pre_softmax = false;
  int64_t moe_router_num_groups = 0;          ///< groups of experts; 0: no groups
  int64_t moe_router_group_topk = 0;          ///< groups whose experts a token may use
  double moe_router_topk_scaling_factor = 0;  ///< factor of the experts' weights; 0: none
  bool moe_apply_probs_on_input = false;      ///< the weights scale the experts' inputs (Llama 4)
  LoadBalancing moe_router_load_balancing_type = LoadBalancing::kAuxLoss;
  double moe_aux_loss_coeff = 0;
  /// Multi-token prediction (MTP, DeepSeek-V3): this many layers after the last one each predict
  /// the token one further ahead, from what the layer before gives and the embedding of the next
  /// token (megatron/core/transformer/multi_token_prediction.py).
  int64_t mtp_num_layers = 0;
  double mtp_loss_scaling_factor = 0.1;  ///< of the mean of their losses

  bool has_qkv_bias() const { return add_bias_linear || add_qkv_bias || add_attention_bias; }
  bool has_projection_bias() const { return add_bias_linear || add_attention_bias; }
  bool has_mlp_bias() const { return add_bias_linear || add_mlp_bias; }
  /// Where the layers are others than those of Megatron-LM and TorchTitan.
  std::vector<LayerVariant> layer_variants() const;
  bool norms_have_weights() const { return norm_parameters != NormParameters::kNone; }
  bool norms_have_biases() const {
    return normalization == Normalization::kLayerNorm && norm_parameters == NormParameters::kAll;
  }
  bool has_norms_before() const { return norm_position != NormPosition::kAfter; }
  bool has_norms_after() const { return norm_position != NormPosition::kBefore; }
  /// Whether one of all layers, counted from 0, has rotary positions where the model has them.
  bool has_rope_in(int64_t layer) const;
  /// Whether one of all layers, counted from 0, attends in the model's window.
  bool has_window_in(int64_t layer) const;
  /// The fewest layers after which windows and rotary positions repeat themselves: 1 where all
  /// layers attend alike, and all of them where nothing repeats itself.
  int64_t attention_period() const;
  bool has_experts() const { return num_experts > 0; }
  bool has_sinks() const { return softmax_type == SoftmaxType::kLearnable; }
  bool has_aux_loss() const {
    return moe_aux_loss_coeff > 0 &&
           (moe_router_load_balancing_type == LoadBalancing::kAuxLoss ||
            moe_router_load_balancing_type == LoadBalancing::kSequenceAuxLoss);
  }
  bool predicts_more_tokens() const { return mtp_num_layers > 0; }
  /// The layers and, after them, those of multi-token prediction.
  int64_t all_layers() const { return num_layers + mtp_num_layers; }
  /// Whether one of all layers, counted from 0, has experts. Those of multi-token prediction are as
  /// the last layer before them.
  bool has_experts_in(int64_t layer) const;
  int64_t expert_layers() const;  ///< of all layers
  /// Layers at the begin that have no experts, where all others have some; empty where layers with
  /// and without experts are mixed otherwise. 0 for a model whose layers are all alike.
  std::optional<int64_t> dense_layers_first() const;

  /// Width of one head: key_width() for query and key, value_width() for value.
  int64_t key_width() const {
    return multi_latent_attention ? qk_head_dim + qk_pos_emb_head_dim : kv_channels;
  }
  /// Width of the part of a head with rotary positions (without MLA).
  int64_t rotary_width() const {
    return static_cast<int64_t>(static_cast<double>(kv_channels) * rotary_percent);
  }
  /// Width of the norms of queries and keys (without MLA).
  int64_t query_norm_width() const {
    return kv_channels * (qk_layernorm_whole ? num_attention_heads : 1);
  }
  int64_t key_norm_width() const {
    return kv_channels * (qk_layernorm_whole ? num_query_groups : 1);
  }
  int64_t value_width() const { return multi_latent_attention ? v_head_dim : kv_channels; }
};

struct ModelPreset {
  std::string name;
  std::vector<std::string> aliases;
  int64_t parameters = 0;  ///< published count; a test compares parameter_count() with it
  std::string source;
  ModelConfig config;
};

const std::vector<ModelPreset>& model_presets();

/// The name without the organisation of a hub and the words for further training:
/// "meta-llama/Meta-Llama-3.1-8B-Instruct" is "Llama-3.1-8B".
std::string_view bare_model_name(std::string_view name);

/// Finds a preset by name or alias, in any case, as it is or bare; null when there is none.
const ModelPreset* find_model_preset(const std::string& name);

ModelConfig with_derived_fields(ModelConfig model);

/// Number of parameters of the whole model, with `vocabulary` rows in its embedding (padded or
/// not).
int64_t parameter_count(const ModelConfig& model, int64_t vocabulary);

/// Number of parameters of the attention of one layer, without the norm before it.
int64_t attention_parameter_count(const ModelConfig& model);

/// Number of parameters of one expert, without its row of the router.
int64_t expert_parameter_count(const ModelConfig& model);

/// Number of parameters of one transformer layer; `layer` counts all layers from 0.
int64_t layer_parameter_count(const ModelConfig& model, int64_t layer);

/// Number of parameters that a layer of multi-token prediction has beside a transformer layer: the
/// projection of hidden states and embeddings together, their norms, and a final norm.
int64_t prediction_parameter_count(const ModelConfig& model);

}  // namespace estimator
