// The options of a model, and the fields of a preset; see options.h.
#pragma once

#include "estimator/base/option.h"
#include "estimator/plan/model_config.h"

namespace estimator {

template <class Visitor>
void visit_shape(Visitor& visit, ModelConfig& model) {
  visit("num_layers", model.num_layers, {"transformer layers", {{"--num-layers"}}});
  visit("hidden_size", model.hidden_size, {"width of the residual stream", {{"--hidden-size"}}});
  visit("ffn_hidden_size", model.ffn_hidden_size, {"width of the MLP", {{"--ffn-hidden-size"}}});
  visit("num_attention_heads",
        model.num_attention_heads,
        {"query heads", {{"--num-attention-heads"}}});
  visit("num_query_groups",
        model.num_query_groups,
        {"key/value heads (GQA, MQA)", {{"--num-query-groups"}}});
  visit("kv_channels", model.kv_channels, {"width of one head", {{"--kv-channels"}}});
  visit("vocab_size", model.vocab_size, {"tokens in the vocabulary, unpadded", {{"--vocab-size"}}});
  visit("max_position_embeddings",
        model.max_position_embeddings,
        {"longest sequence", {{"--max-position-embeddings"}}});
}

/// Norms, activation, positions and biases: what a layer is made of.
template <class Visitor>
void visit_layers(Visitor& visit, ModelConfig& model) {
  visit("tie_embeddings",
        model.tie_embeddings,
        {"output layer shares the input embedding",
         {{"--untie-embeddings-and-output-weights", "false", "an output layer of its own"}}});
  visit("normalization", model.normalization, {"norm of the layers", {{"--normalization"}}});
  visit("norm_epsilon",
        model.norm_epsilon,
        {"epsilon that the norm adds to the variance", {{"--norm-epsilon"}}});
  visit("activation",
        model.activation,
        {"activation function of the MLP; swiglu and geglu are gated; gelu_new is gelu, of several "
         "operators in the frameworks transformers and deepspeed",
         {{"--swiglu", "\"swiglu\"", "a gated MLP with SiLU"},
          {"--squared-relu", "\"squared_relu\"", "the square of ReLU"}}});
  visit("position_embedding",
        model.position_embedding,
        {"position embedding", {{"--position-embedding-type"}}});
  visit("rotary_percent",
        model.rotary_percent,
        {"part of each head that has rotary positions", {{"--rotary-percent"}}});
  visit("rotary_base", model.rotary_base, {"base of the rotary angles", {{"--rotary-base"}}});
  visit("add_bias_linear",
        model.add_bias_linear,
        {"biases in all linear layers of the blocks",
         {{"--disable-bias-linear", "false", "no biases"}}});
  visit("add_qkv_bias",
        model.add_qkv_bias,
        {"biases only for query, key and value", {{"--add-qkv-bias", "true"}}});
  visit("parallel_residual",
        model.parallel_residual,
        {"attention and MLP of a layer read the same input, and one sum adds both to it (GPT-J, "
         "GPT-NeoX, Falcon)",
         {{"--parallel-residual", "true"}}});
  visit("tied_layernorm",
        model.tied_layernorm,
        {"with --parallel-residual: one norm before attention and MLP, not one for each",
         {{"--tied-layernorm", "true"}}});
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
        {"MLA: width of the queries' latent; 0: none", {{"--q-lora-rank"}}});
  visit("kv_lora_rank",
        model.kv_lora_rank,
        {"MLA: width of the latent of keys and values", {{"--kv-lora-rank"}}});
  visit("qk_head_dim",
        model.qk_head_dim,
        {"MLA: width of a query's or key's head without positions", {{"--qk-head-dim"}}});
  visit("qk_pos_emb_head_dim",
        model.qk_pos_emb_head_dim,
        {"MLA: width of a head's part with rotary positions; all heads share the key of this part",
         {{"--qk-pos-emb-head-dim"}}});
  visit("v_head_dim", model.v_head_dim, {"MLA: width of a value's head", {{"--v-head-dim"}}});
  visit("qk_layernorm",
        model.qk_layernorm,
        {"norms of queries and keys in each head; MLA: of the latents",
         {{"--qk-layernorm", "true"}}});
}

template <class Visitor>
void visit_dropout(Visitor& visit, ModelConfig& model) {
  visit("hidden_dropout",
        model.hidden_dropout,
        {"dropout probability after attention, MLP and embedding", {{"--hidden-dropout"}}});
  visit("attention_dropout",
        model.attention_dropout,
        {"dropout probability of the attention weights", {{"--attention-dropout"}}});
}

template <class Visitor>
void visit_experts(Visitor& visit, ModelConfig& model) {
  visit("num_experts",
        model.num_experts,
        {"experts of a layer; 0: a dense model", {{"--num-experts"}}});
  visit("moe_router_topk",
        model.moe_router_topk,
        {"experts that each token uses", {{"--moe-router-topk"}}});
  visit("moe_ffn_hidden_size",
        model.moe_ffn_hidden_size,
        {"width of one expert", {{"--moe-ffn-hidden-size"}}});
  visit("moe_shared_expert_intermediate_size",
        model.moe_shared_expert_intermediate_size,
        {"width of the shared experts together, which all tokens use; 0: none",
         {{"--moe-shared-expert-intermediate-size"}}});
  visit("moe_layer_freq",
        model.moe_layer_freq,
        {"layers with experts: 2 means every second layer; or 0 (dense) or 1 (experts) for each "
         "layer, \"([0]*3+[1]*58)\"",
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
         {{"--moe-router-num-groups"}}});
  visit("moe_router_group_topk",
        model.moe_router_group_topk,
        {"groups whose experts a token may use", {{"--moe-router-group-topk"}}});
  visit("moe_router_topk_scaling_factor",
        model.moe_router_topk_scaling_factor,
        {"factor for the experts' weights; 0: no factor", {{"--moe-router-topk-scaling-factor"}}});
  visit("moe_apply_probs_on_input",
        model.moe_apply_probs_on_input,
        {"the experts' weights scale what goes into them, not what comes out",
         {{"--moe-apply-probs-on-input", "true"}}});
  visit("moe_router_load_balancing_type",
        model.moe_router_load_balancing_type,
        {"auxiliary loss that balances the experts: over a micro-batch, or over each sequence",
         {{"--moe-router-load-balancing-type"}}});
  visit("moe_aux_loss_coeff",
        model.moe_aux_loss_coeff,
        {"weight of the balancing loss; 0: there is none", {{"--moe-aux-loss-coeff"}}});
}

template <class Visitor>
void visit_prediction(Visitor& visit, ModelConfig& model) {
  visit(
      "mtp_num_layers",
      model.mtp_num_layers,
      {"layers of multi-token prediction (MTP, DeepSeek-V3) after the last one, each with a loss; "
       "0: none",
       {{"--mtp-num-layers"}}});
  visit("mtp_loss_scaling_factor",
        model.mtp_loss_scaling_factor,
        {"MTP: weight of the mean of its layers' losses", {{"--mtp-loss-scaling-factor"}}});
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
