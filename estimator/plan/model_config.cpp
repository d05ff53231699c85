#include "estimator/plan/model_config.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "estimator/base/database.h"
#include "estimator/plan/model_options.h"

namespace onerank_data {
extern const std::string_view models_json;
}

namespace estimator {
namespace {

std::vector<ModelPreset> read_presets() {
  auto presets = read_database<ModelPreset>(onerank_data::models_json, "models.json");
  for (ModelPreset& preset : presets) preset.config = with_derived_fields(preset.config);
  return presets;
}

/// Drops one word for what has been trained further, with the same shape, or for the version of a
/// family whose versions of this name have one shape: Mixtral 0.1, DeepSeek-V3 of March 2025, R1 of
/// May 2025, Mistral's models of July and November 2024 and January 2025, Qwen3 of July 2025.
bool drop_suffix(std::string_view& name) {
  constexpr std::string_view kSuffixes[] = {"-instruct",
                                            "-chat",
                                            "-base",
                                            "-hf",
                                            "-it",
                                            "-thinking",
                                            "-v0.1",
                                            "-0324",
                                            "-0528",
                                            "-2407",
                                            "-2411",
                                            "-2501",
                                            "-2507"};
  for (const std::string_view suffix : kSuffixes) {
    const bool has_it =
        name.size() > suffix.size() && same_name(name.substr(name.size() - suffix.size()), suffix);
    if (!has_it) continue;
    name.remove_suffix(suffix.size());
    return true;
  }
  return false;
}

}  // namespace

const std::vector<ModelPreset>& model_presets() {
  static const std::vector<ModelPreset> presets = read_presets();
  return presets;
}

std::string_view bare_model_name(std::string_view name) {
  constexpr std::string_view kVendor = "meta-";
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  if (same_name(name.substr(0, kVendor.size()), kVendor)) name.remove_prefix(kVendor.size());
  while (drop_suffix(name)) {
  }
  return name;
}

const ModelPreset* find_model_preset(const std::string& name) {
  for (const std::string_view wanted : {std::string_view(name), bare_model_name(name)}) {
    for (const ModelPreset& preset : model_presets()) {
      if (is_called(wanted, preset.name, preset.aliases)) return &preset;
    }
  }
  return nullptr;
}

ModelConfig with_derived_fields(ModelConfig model) {
  if (model.ffn_hidden_size == 0) {
    model.ffn_hidden_size = is_gated(model.activation) ? 4 * model.hidden_size * 2 / 3 / 64 * 64
                                                       : 4 * model.hidden_size;
  }
  if (model.num_query_groups == 0) model.num_query_groups = model.num_attention_heads;
  if (model.kv_channels == 0 && model.num_attention_heads > 0) {
    model.kv_channels = model.hidden_size / model.num_attention_heads;
  }
  if (model.has_experts() && model.moe_ffn_hidden_size == 0) {
    model.moe_ffn_hidden_size = model.ffn_hidden_size;
  }
  return model;
}

namespace {

/// Whether a layer is one of each n-th, where `freq` is that n, or has `value` in the list of all.
bool is_listed(const std::vector<int64_t>& freq, int64_t layer, int64_t value) {
  if (freq.size() > 1) {
    return freq.at(std::min(static_cast<std::size_t>(layer), freq.size() - 1)) == value;
  }
  const int64_t every = freq.empty() ? 0 : freq.front();
  return every > 0 && (layer + 1) % every == 0;
}

}  // namespace

std::vector<LayerVariant> ModelConfig::layer_variants() const {
  const std::pair<bool, LayerVariant> all[] = {
      {has_norms_after(), {"norms after attention and MLP", "norm_position"}},
      {norm_parameters != NormParameters::kAll, {"norms without a bias", "norm_parameters"}},
      {qk_layernorm_whole, {"norms over all heads", "qk_layernorm_whole"}},
      {add_attention_bias, {"biases in attention alone", "add_attention_bias"}},
      {add_mlp_bias, {"biases in the MLP alone", "add_mlp_bias"}},
      {add_output_bias, {"biases of the output layer", "add_output_bias"}},
      {final_logit_softcapping > 0, {"logits with a soft cap", "final_logit_softcapping"}}};
  std::vector<LayerVariant> used;
  for (const auto& [is_used, variant] : all) {
    if (is_used) used.push_back(variant);
  }
  return used;
}

bool ModelConfig::has_rope_in(int64_t layer) const { return !is_listed(no_rope_freq, layer, 1); }

bool ModelConfig::has_window_in(int64_t layer) const {
  return sliding_window > 0 && !is_listed(window_attn_skip_freq, layer, 0);
}

int64_t ModelConfig::attention_period() const {
  const auto repeats_after = [&](int64_t period) {
    for (int64_t layer = period; layer < num_layers; ++layer) {
      if (has_rope_in(layer) != has_rope_in(layer - period)) return false;
      if (has_window_in(layer) != has_window_in(layer - period)) return false;
    }
    return true;
  };
  int64_t period = 1;
  while (period < num_layers && !repeats_after(period)) ++period;
  return period;
}

bool ModelConfig::has_experts_in(int64_t layer) const {
  if (!has_experts()) return false;
  layer = std::min(layer, num_layers - 1);
  if (moe_layer_freq.size() == 1) return layer % moe_layer_freq.front() == 0;
  return moe_layer_freq.at(static_cast<std::size_t>(layer)) != 0;
}

int64_t ModelConfig::expert_layers() const {
  int64_t count = 0;
  for (int64_t layer = 0; layer < all_layers(); ++layer) count += has_experts_in(layer) ? 1 : 0;
  return count;
}

std::optional<int64_t> ModelConfig::dense_layers_first() const {
  if (!has_experts()) return 0;
  int64_t first = 0;
  while (first < num_layers && !has_experts_in(first)) ++first;
  if (first == num_layers || expert_layers() != all_layers() - first) return std::nullopt;
  return first;
}

namespace {

int64_t mlp_parameter_count(const ModelConfig& model, int64_t width) {
  const int64_t in = width * (is_gated(model.activation) ? 2 : 1);
  const int64_t biases = model.has_mlp_bias() ? in + model.hidden_size : 0;
  return model.hidden_size * (in + width) + biases;
}

int64_t norm_parameter_count(const ModelConfig& model, int64_t width) {
  return width * ((model.norms_have_weights() ? 1 : 0) + (model.norms_have_biases() ? 1 : 0));
}

int64_t latent_attention_parameter_count(const ModelConfig& model) {
  const int64_t h = model.hidden_size, heads = model.num_attention_heads;
  const int64_t query_inputs = model.q_lora_rank > 0 ? model.q_lora_rank : h;
  const int64_t key_value = heads * (model.qk_head_dim + model.v_head_dim);
  int64_t count = h * model.q_lora_rank + query_inputs * heads * model.key_width();
  count += h * (model.kv_lora_rank + model.qk_pos_emb_head_dim) + model.kv_lora_rank * key_value;
  count += heads * model.v_head_dim * h;
  if (model.has_projection_bias()) count += h;  // the output's alone
  if (!model.qk_layernorm) return count;
  return count + norm_parameter_count(model, model.q_lora_rank) +
         norm_parameter_count(model, model.kv_lora_rank);
}

}  // namespace

int64_t attention_parameter_count(const ModelConfig& model) {
  if (model.multi_latent_attention) return latent_attention_parameter_count(model);
  const int64_t h = model.hidden_size;
  const int64_t query = model.num_attention_heads * model.kv_channels;
  const int64_t qkv = query + 2 * model.num_query_groups * model.kv_channels;
  int64_t count = h * qkv + query * h;
  if (model.has_qkv_bias()) count += qkv;
  if (model.has_projection_bias()) count += h;
  if (model.has_sinks()) count += model.num_attention_heads;
  if (!model.qk_layernorm) return count;
  return count + norm_parameter_count(model, model.query_norm_width()) +
         norm_parameter_count(model, model.key_norm_width());
}

int64_t expert_parameter_count(const ModelConfig& model) {
  return mlp_parameter_count(model, model.moe_ffn_hidden_size);
}

int64_t layer_parameter_count(const ModelConfig& model, int64_t layer) {
  const int64_t h = model.hidden_size;
  const int64_t positions = model.norm_position == NormPosition::kBoth ? 2 : 1;
  const int64_t norms = positions * (model.tied_layernorm ? 1 : 2);
  int64_t count = norms * norm_parameter_count(model, h) + attention_parameter_count(model);
  if (!model.has_experts_in(layer))
    return count + mlp_parameter_count(model, model.ffn_hidden_size);
  const int64_t of_router = h + (model.has_mlp_bias() ? 1 : 0);
  count += model.num_experts * (of_router + expert_parameter_count(model));
  if (model.moe_shared_expert_intermediate_size > 0) {
    count += mlp_parameter_count(model, model.moe_shared_expert_intermediate_size);
  }
  return count;
}

int64_t prediction_parameter_count(const ModelConfig& model) {
  const int64_t h = model.hidden_size;
  return 2 * h * h + 3 * norm_parameter_count(model, h);
}

int64_t parameter_count(const ModelConfig& model, int64_t vocabulary) {
  const int64_t h = model.hidden_size;
  int64_t count = model.mtp_num_layers * prediction_parameter_count(model);
  for (int64_t layer = 0; layer < model.all_layers(); ++layer) {
    count += layer_parameter_count(model, layer);
  }
  count += norm_parameter_count(model, h);
  count += vocabulary * h * (model.tie_embeddings ? 1 : 2);
  if (model.add_output_bias) count += vocabulary;
  if (model.position_embedding == PositionEmbedding::kLearnedAbsolute) {
    count += model.max_position_embeddings * h;
  }
  return count;
}

}  // namespace estimator
