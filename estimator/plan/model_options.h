// The options of a model, and the fields of a preset; see options.h.
#pragma once

#include "estimator/base/option.h"
#include "estimator/plan/model_config.h"

namespace estimator {

// What is larger is a mistake in typing: published models have up to 1,000 layers (DeepNet, arXiv
// 2203.00555), 128 heads, a width of 25,600, 2,048 experts and 262,144 tokens.
inline constexpr Range kModelLayers = {1, 4096};
inline constexpr Range kModelHeads = {1, 4096};
inline constexpr Range kModelWidth = {1, 1 << 18};
inline constexpr Range kModelWidthOrNone = {0, kModelWidth.most};
inline constexpr Range kModelMlpOrNone = {0, 64 * kModelWidth.most};  ///< of an MLP
inline constexpr Range kModelExperts = {1, 4096};
inline constexpr Range kModelExpertsOrNone = {0, kModelExperts.most};
inline constexpr Range kModelVocabulary = {1, 1 << 24};
inline constexpr Range kModelPositions = {1, 1e9};
inline constexpr Range kModelPositionsOrNone = {0, kModelPositions.most};
inline constexpr Range kModelPredictions = {0, 64};
inline constexpr Range kModelFactor = {0, 1e9};
inline constexpr Range kModelDropout = {0, 0.99, "0 for no dropout"};

template <class Visitor>
void visit_shape(Visitor& visit, ModelConfig& model) {
  visit("num_layers", model.num_layers, {"transformer layers", kModelLayers, {{"--num-layers"}}});
  visit("hidden_size",
        model.hidden_size,
        {"width of the residual stream", kModelWidth, {{"--hidden-size"}}});
  visit("ffn_hidden_size",
        model.ffn_hidden_size,
        {"width of the MLP; 0: four times the hidden size, of a gated MLP two thirds of that",
         kModelMlpOrNone,
         {{"--ffn-hidden-size"}}});
  visit("num_attention_heads",
        model.num_attention_heads,
        {"query heads", kModelHeads, {{"--num-attention-heads"}}});
  visit("num_query_groups",
        model.num_query_groups,
        {"key/value heads (GQA, MQA); 0: as many as query heads",
         Range{0, kModelHeads.most},
         {{"--num-query-groups"}}});
  visit("kv_channels",
        model.kv_channels,
        {"width of one head; 0: the hidden size / the query heads",
         kModelWidthOrNone,
         {{"--kv-channels"}}});
  visit("vocab_size",
        model.vocab_size,
        {"tokens in the vocabulary, unpadded", kModelVocabulary, {{"--vocab-size"}}});
  visit("max_position_embeddings",
        model.max_position_embeddings,
        {"longest sequence", kModelPositions, {{"--max-position-embeddings"}}});
}

template <class Visitor>
void visit_biases(Visitor& visit, ModelConfig& model) {
  visit("add_bias_linear",
        model.add_bias_linear,
        {"biases in all linear layers of the blocks",
         {{"--disable-bias-linear", "false", "no biases"}}});
  visit("add_qkv_bias",
        model.add_qkv_bias,
        {"biases only for query, key and value", {{"--add-qkv-bias", "true"}}});
  visit("packed_qkv",
        model.packed_qkv,
        {"query, key and value are one product in transformers (c_attn, query_key_value, "
         "qkv_proj), for which adapters have no q_proj, k_proj and v_proj",
         {ours({"--packed-qkv", "true"})}});
  visit("add_attention_bias",
        model.add_attention_bias,
        {"biases in attention alone: for query, key, value and the output",
         {ours({"--add-attention-bias", "true"})}});
  visit("add_mlp_bias",
        model.add_mlp_bias,
        {"biases in the MLP alone (GPT-J)", {ours({"--add-mlp-bias", "true"})}});
  visit("add_output_bias",
        model.add_output_bias,
        {"a bias of the output layer (Phi-2)", {ours({"--add-output-bias", "true"})}});
}

/// Norms, activation, positions and biases: what a layer is made of.
template <class Visitor>
void visit_layers(Visitor& visit, ModelConfig& model) {
  visit("tie_embeddings",
        model.tie_embeddings,
        {"output layer shares the input embedding",
         {{"--untie-embeddings-and-output-weights", "false", "an output layer of its own"}}});
  visit("normalization", model.normalization, {"norm of the layers", {{"--normalization"}}});
  visit("norm_parameters",
        model.norm_parameters,
        {"parameters of the norms: all, a weight without a bias (Cohere), or none (OLMo)",
         {ours({"--norm-parameters"})}});
  visit("norm_position",
        model.norm_position,
        {"norms before attention and MLP, after them (OLMo 2), or both (GLM-4-0414)",
         {ours({"--norm-position"})}});
  visit(
      "norm_weight_in_fp32",
      model.norm_weight_in_fp32,
      {"an RMSNorm that is made of operators multiplies by its weight in fp32 (Gemma, OLMo 2), not "
       "in the type of its input",
       {ours({"--norm-weight-in-fp32", "true"})}});
  visit("norm_epsilon",
        model.norm_epsilon,
        {"epsilon that the norm adds to the variance",
         Range{1e-20, 1, "1e-5 as usual"},
         {{"--norm-epsilon"}}});
  visit("activation",
        model.activation,
        {"activation function of the MLP; swiglu, geglu and quick_geglu are gated; gelu_new is "
         "gelu, of several operators in the frameworks transformers and deepspeed",
         {{"--swiglu", "\"swiglu\"", "a gated MLP with SiLU"},
          {"--squared-relu", "\"squared_relu\"", "the square of ReLU"},
          {"--quick-geglu", "\"quick_geglu\"", "a gated MLP with x sigmoid(1.702 x)"}}});
  visit("activation_func_clamp_value",
        model.activation_func_clamp_value,
        {"with quick_geglu: what it reads is cut at this value (gpt-oss); 0: nowhere",
         kModelFactor,
         {{"--activation-func-clamp-value"}}});
  visit("glu_linear_offset",
        model.glu_linear_offset,
        {"with quick_geglu: added to the half that has no function (gpt-oss)",
         kModelFactor,
         {{"--glu-linear-offset"}}});
  visit("position_embedding",
        model.position_embedding,
        {"position embedding", {{"--position-embedding-type"}}});
  visit("rotary_percent",
        model.rotary_percent,
        {"part of each head that has rotary positions",
         Range{1e-3, 1, "1 for the whole head"},
         {{"--rotary-percent"}}});
  visit("rotary_base",
        model.rotary_base,
        {"base of the rotary angles", Range{2, 1e15, "10000 as usual"}, {{"--rotary-base"}}});
  visit("rotary_base_in_window",
        model.rotary_base_in_window,
        {"base of the rotary angles in layers with a window (Gemma 3); 0: that of the others",
         Range{0, 1e15},
         {ours({"--rotary-base-in-window"})}});
  visit(
      "no_rope_freq",
      model.no_rope_freq,
      {"layers without rotary positions: 4 means every fourth layer; or 1 (without) or 0 for each "
       "layer; 0: none",
       Range{0, kModelLayers.most},
       {{"--no-rope-freq"}}});
  visit("sliding_window",
        model.sliding_window,
        {"tokens, with its own, to which a token attends; 0: to all before it",
         kModelPositionsOrNone,
         {ours({"--sliding-window"})}});
  visit("window_attn_skip_freq",
        model.window_attn_skip_freq,
        {"layers that attend to the whole sequence: 4 means every fourth layer; or 1 (with the "
         "window) or 0 for each layer; 0: none",
         Range{0, kModelLayers.most},
         {{"--window-attn-skip-freq"}}});
  visit_biases(visit, model);
  visit("final_logit_softcapping",
        model.final_logit_softcapping,
        {"logits are this number times tanh(logits / it) (Gemma 2); 0: they are not",
         kModelFactor,
         {ours({"--final-logit-softcapping"})}});
  visit("parallel_residual",
        model.parallel_residual,
        {"attention and MLP of a layer read the same input, and one sum adds both to it (GPT-J, "
         "GPT-NeoX, Falcon)",
         {ours({"--parallel-residual", "true"})}});
  visit("tied_layernorm",
        model.tied_layernorm,
        {"with --parallel-residual: one norm before attention and MLP, not one for each",
         {ours({"--tied-layernorm", "true"})}});
}

template <class Visitor>
void visit_attention(Visitor& visit, ModelConfig& model) {
  visit(
      "multi_latent_attention",
      model.multi_latent_attention,
      {"multi-latent attention (MLA, DeepSeek): keys, values and queries are computed from latents",
       {{"--multi-latent-attention", "true"}}});
  visit("q_lora_rank",
        model.q_lora_rank,
        {"MLA: width of the queries' latent; 0: none", kModelWidthOrNone, {{"--q-lora-rank"}}});
  visit("kv_lora_rank",
        model.kv_lora_rank,
        {"MLA: width of the latent of keys and values", kModelWidth, {{"--kv-lora-rank"}}});
  visit("qk_head_dim",
        model.qk_head_dim,
        {"MLA: width of a query's or key's head without positions",
         kModelWidth,
         {{"--qk-head-dim"}}});
  visit("qk_pos_emb_head_dim",
        model.qk_pos_emb_head_dim,
        {"MLA: width of a head's part with rotary positions; all heads share the key of this part",
         kModelWidth,
         {{"--qk-pos-emb-head-dim"}}});
  visit("v_head_dim",
        model.v_head_dim,
        {"MLA: width of a value's head", kModelWidth, {{"--v-head-dim"}}});
  visit("qk_layernorm",
        model.qk_layernorm,
        {"norms of queries and keys in each head; MLA: of the latents",
         {{"--qk-layernorm", "true"}}});
  visit("qk_layernorm_whole",
        model.qk_layernorm_whole,
        {"with --qk-layernorm: one norm over all heads of a token (OLMo 2)",
         {ours({"--qk-layernorm-whole", "true"})}});
  visit("softmax_type",
        model.softmax_type,
        {"softmax of attention: vanilla, or learnable with one learned number more for each head "
         "(a sink, gpt-oss)",
         {{"--softmax-type"}}});
}

template <class Visitor>
void visit_dropout(Visitor& visit, ModelConfig& model) {
  visit("hidden_dropout",
        model.hidden_dropout,
        {"dropout probability after attention, MLP and embedding",
         kModelDropout,
         {{"--hidden-dropout"}}});
  visit("attention_dropout",
        model.attention_dropout,
        {"dropout probability of the attention weights", kModelDropout, {{"--attention-dropout"}}});
}

template <class Visitor>
void visit_experts(Visitor& visit, ModelConfig& model) {
  visit("num_experts",
        model.num_experts,
        {"experts of a layer; 0: a dense model", kModelExpertsOrNone, {{"--num-experts"}}});
  visit("moe_router_topk",
        model.moe_router_topk,
        {"experts that each token uses", kModelExperts, {{"--moe-router-topk"}}});
  visit("moe_ffn_hidden_size",
        model.moe_ffn_hidden_size,
        {"width of one expert; 0: the width of the MLP",
         kModelMlpOrNone,
         {{"--moe-ffn-hidden-size"}}});
  visit("moe_shared_expert_intermediate_size",
        model.moe_shared_expert_intermediate_size,
        {"width of the shared experts together, which all tokens use; 0: none",
         kModelMlpOrNone,
         {{"--moe-shared-expert-intermediate-size"}}});
  visit("moe_layer_freq",
        model.moe_layer_freq,
        {"layers with experts: 2 means every second layer; or 0 (dense) or 1 (experts) for each "
         "layer, \"([0]*3+[1]*58)\"",
         Range{0, kModelLayers.most},
         {{"--moe-layer-freq"}}});
}

template <class Visitor>
void visit_router(Visitor& visit, ModelConfig& model) {
  visit(
      "moe_router_score_function",
      model.moe_router_score_function,
      {"function that turns the router's logits into weights", {{"--moe-router-score-function"}}});
  visit("moe_router_pre_softmax",
        model.moe_router_pre_softmax,
        {"softmax over all experts before choosing, not over the chosen ones",
         {{"--moe-router-pre-softmax", "true"}}});
  visit("moe_router_num_groups",
        model.moe_router_num_groups,
        {"groups of experts; a token uses experts of only some groups; 0: no groups",
         kModelExpertsOrNone,
         {{"--moe-router-num-groups"}}});
  visit(
      "moe_router_group_topk",
      model.moe_router_group_topk,
      {"groups whose experts a token may use", kModelExpertsOrNone, {{"--moe-router-group-topk"}}});
  visit("moe_router_topk_scaling_factor",
        model.moe_router_topk_scaling_factor,
        {"factor for the experts' weights; 0: no factor",
         kModelFactor,
         {{"--moe-router-topk-scaling-factor"}}});
  visit("moe_apply_probs_on_input",
        model.moe_apply_probs_on_input,
        {"the experts' weights scale what goes into them, not what comes out",
         {{"--moe-apply-probs-on-input", "true"}}});
  visit("moe_router_load_balancing_type",
        model.moe_router_load_balancing_type,
        {"auxiliary loss that balances the experts: over a micro-batch, or over each sequence",
         {{"--moe-router-load-balancing-type"}}});
  visit(
      "moe_aux_loss_coeff",
      model.moe_aux_loss_coeff,
      {"weight of the balancing loss; 0: there is none", kModelFactor, {{"--moe-aux-loss-coeff"}}});
}

template <class Visitor>
void visit_prediction(Visitor& visit, ModelConfig& model) {
  visit(
      "mtp_num_layers",
      model.mtp_num_layers,
      {"layers of multi-token prediction (MTP, DeepSeek-V3) after the last one, each with a loss; "
       "0: none",
       kModelPredictions,
       {{"--mtp-num-layers"}}});
  visit("mtp_loss_scaling_factor",
        model.mtp_loss_scaling_factor,
        {"MTP: weight of the mean of its layers' losses",
         kModelFactor,
         {{"--mtp-loss-scaling-factor"}}});
}

template <class Visitor>
void visit_fields(Visitor& visit, ModelConfig& model) {
  visit_shape(visit, model);
  visit_layers(visit, model);
  visit_attention(visit, model);
  visit_dropout(visit, model);
  visit_experts(visit, model);
  visit_router(visit, model);
  visit_prediction(visit, model);
}

template <class Visitor>
void visit_fields(Visitor& visit, ModelPreset& preset) {
  visit("name", preset.name, "the name to type");
  visit("aliases", preset.aliases, "other names");
  visit("parameters", preset.parameters, "published parameter count");
  visit("source", preset.source, "where the shape comes from");
  visit("config", preset.config, "the shape");
}

}  // namespace estimator
