#include "estimator/plan/model_config.h"

#include <string_view>

#include "estimator/hardware/database.h"

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

}  // namespace

const std::vector<ModelPreset>& model_presets() {
  static const std::vector<ModelPreset> presets = read_presets();
  return presets;
}

const ModelPreset* find_model_preset(const std::string& name) {
  for (const ModelPreset& preset : model_presets()) {
    if (is_called(name, preset.name, preset.aliases)) return &preset;
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
  return model;
}

int64_t layer_parameter_count(const ModelConfig& model) {
  const int64_t h = model.hidden_size;
  const int64_t query = model.num_attention_heads * model.kv_channels;
  const int64_t qkv = query + 2 * model.num_query_groups * model.kv_channels;
  const int64_t mlp_in = model.ffn_hidden_size * (is_gated(model.activation) ? 2 : 1);
  const int64_t norm = h * (model.normalization == Normalization::kLayerNorm ? 2 : 1);
  int64_t count = 2 * norm + h * qkv + query * h + h * mlp_in + model.ffn_hidden_size * h;
  if (model.add_bias_linear) count += qkv + h + mlp_in + h;
  if (!model.add_bias_linear && model.add_qkv_bias) count += qkv;
  return count;
}

int64_t parameter_count(const ModelConfig& model, int64_t vocabulary) {
  const int64_t h = model.hidden_size;
  int64_t count = model.num_layers * layer_parameter_count(model);
  count += h * (model.normalization == Normalization::kLayerNorm ? 2 : 1);
  count += vocabulary * h * (model.tie_embeddings ? 1 : 2);
  if (model.position_embedding == PositionEmbedding::kLearnedAbsolute) {
    count += model.max_position_embeddings * h;
  }
  return count;
}

}  // namespace estimator
