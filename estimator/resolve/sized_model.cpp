#include "estimator/resolve/sized_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/resolve/plan_tree.h"

namespace estimator {
namespace {

constexpr double kSmallestModel = 1e8, kLargestModel = 1e14;

/// What "13b" says; empty if it is no size.
std::optional<double> size_of(const std::string& name) {
  double number = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, number);
  if (error != std::errc() || end - stop != 1) return std::nullopt;
  const char unit = static_cast<char>(std::tolower(static_cast<unsigned char>(*stop)));
  const double scale = unit == 'm' ? 1e6 : unit == 'b' ? 1e9 : unit == 't' ? 1e12 : 0;
  const double size = number * scale;
  const bool is_a_size = size >= kSmallestModel && size <= kLargestModel;  // not NaN
  if (!is_a_size) return std::nullopt;
  return size;
}

int64_t nearest_multiple(double value, int64_t of) {
  return std::max(of, static_cast<int64_t>(std::llround(value / static_cast<double>(of))) * of);
}

ModelConfig llama_of(double size) {
  constexpr int64_t kHeadWidth = 128, kMlpMultiple = 256, kVocabulary = 32'000;
  constexpr double kWidthOfLayer = 128;  // h / l of Llama 7B and 13B
  // 12 l h^2 parameters are in the layers, with h = 128 l.
  const double width = std::cbrt(size / 12 * kWidthOfLayer);
  const double heads = width / kHeadWidth;
  ModelConfig model;
  model.num_attention_heads = nearest_multiple(heads, heads < 12 ? 1 : 8);
  model.hidden_size = model.num_attention_heads * kHeadWidth;
  model.ffn_hidden_size = divide_up(model.hidden_size * 8 / 3, kMlpMultiple) * kMlpMultiple;
  model.vocab_size = kVocabulary;
  model.max_position_embeddings = 4096;
  model.tie_embeddings = false;
  model.normalization = Normalization::kRmsNorm;
  model.activation = Activation::kSwiglu;
  model.position_embedding = PositionEmbedding::kRope;
  model.add_bias_linear = false;
  model.hidden_dropout = model.attention_dropout = 0;
  model.num_layers = 1;
  model = with_derived_fields(model);
  const auto of_layer = static_cast<double>(layer_parameter_count(model, 0));
  const double of_head = static_cast<double>(parameter_count(model, kVocabulary)) - of_layer;
  const double layers = (size - of_head) / of_layer;
  model.num_layers = nearest_multiple(layers, layers < 16 ? 1 : 4);
  return model;
}

}  // namespace

std::optional<ModelPreset> sized_model(const std::string& name) {
  const std::optional<double> size = size_of(name);
  if (!size) return std::nullopt;
  const ModelConfig config = llama_of(*size);
  return ModelPreset{.name = name,
                     .aliases = {},
                     .parameters = parameter_count(config, config.vocab_size),
                     .source = "assumed: Llama's architecture (Touvron et al. 2023)",
                     .config = config};
}

std::optional<ModelPreset> named_model(const std::string& name) {
  if (const ModelPreset* preset = find_model_preset(name)) return *preset;
  return sized_model(name);
}

std::optional<int64_t> number_of_model(const Json& tree,
                                       const std::string& key,
                                       int64_t ModelConfig::*of_named) {
  for (const char* path : {"model.", "model.overrides."}) {
    const Json number = find_in_tree(tree, path + key);
    if (number.is_number_integer()) return number.get<int64_t>();
  }
  for (const char* path : {"model", "model.preset"}) {
    const Json name = find_in_tree(tree, path);
    if (!name.is_string()) continue;
    const auto model = named_model(name.get<std::string>());
    if (model) return model->config.*of_named;
  }
  return std::nullopt;
}

bool names_experts(const Json& tree) {
  return number_of_model(tree, "num_experts", &ModelConfig::num_experts).value_or(0) > 0;
}

std::string shape_words(const ModelConfig& model) {
  return fmt::format(
      "{} layers of width {} with {} heads, an MLP of {}, a vocabulary of {}: {} parameters",
      model.num_layers,
      with_commas(model.hidden_size),
      model.num_attention_heads,
      with_commas(model.ffn_hidden_size),
      with_commas(model.vocab_size),
      with_commas(parameter_count(model, model.vocab_size)));
}

}  // namespace estimator
