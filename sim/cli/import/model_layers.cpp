#include "sim/cli/import/model_layers.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "estimator/base/fields.h"

namespace sim {
namespace {

using estimator::Json;
using Pattern = std::vector<int64_t>;  ///< a number for each layer

/// Of a model with more layers no pattern is written; a plan refuses it.
constexpr int64_t kMostListedLayers = 10'000;

Pattern pattern_of(const Json& model, const std::function<bool(int64_t)>& has) {
  const int64_t layers = whole_number(model, "num_layers");
  Pattern pattern;
  for (int64_t layer = 0; layer < std::min(layers, kMostListedLayers); ++layer) {
    pattern.push_back(has(layer) ? 1 : 0);
  }
  return pattern;
}

/// One number n where each n-th layer, and no other, is `marked`; 0 where none is.
Json as_frequency(const Pattern& pattern, int64_t marked) {
  const auto first = std::find(pattern.begin(), pattern.end(), marked);
  if (first == pattern.end()) return Json::array({0});
  const int64_t every = first - pattern.begin() + 1;
  int64_t number = 0;
  const bool is_every = std::all_of(pattern.begin(), pattern.end(), [&](int64_t layer) {
    return (++number % every == 0) == (layer == marked);
  });
  return is_every ? Json::array({every}) : Json(pattern);
}

/// What a list of the configuration says of a layer; null where it has no such list.
Json listed(const Json& config, const char* key, int64_t layer) {
  const Json list = config.value(key, Json());
  const auto at = static_cast<std::size_t>(layer);
  return list.is_array() && at < list.size() ? list[at] : Json();
}

/// Which layers have experts: DeepseekV3DecoderLayer asks for first_k_dense_replace,
/// Qwen3MoeDecoderLayer for mlp_only_layers and decoder_sparse_step, and Ernie4_5_MoeDecoderLayer
/// for moe_layer_start_index, moe_layer_end_index and moe_layer_interval.
void set_expert_layers(const Json& config, Json& model) {
  if (whole_number(model, "num_experts") == 0) return;
  const int64_t dense = std::max(whole_number(config, "first_k_dense_replace"),
                                 whole_number(config, "moe_layer_start_index"));
  const int64_t end = whole_number(config, "moe_layer_end_index");  // 0: the last one
  const int64_t step = std::max<int64_t>(
      {whole_number(config, "decoder_sparse_step"), whole_number(config, "moe_layer_interval"), 1});
  const Json only = config.value("mlp_only_layers", Json::array());
  const Pattern pattern = pattern_of(model, [&](int64_t layer) {
    return layer >= dense && (end == 0 || layer <= end) && (layer + 1) % step == 0 &&
           std::none_of(only.begin(), only.end(), [&](const Json& said) { return said == layer; });
  });
  if (std::count(pattern.begin(), pattern.end(), 0) > 0) model["moe_layer_freq"] = pattern;
}

/// After how many layers one without a window comes; 0: none comes. It is a number, or a word with
/// a letter for each layer ("LLLG" of EXAONE 4).
int64_t layers_of_window_pattern(const Json& config) {
  const Json pattern = config.value("sliding_window_pattern", Json());
  return pattern.is_string() ? static_cast<int64_t>(pattern.get<std::string>().size())
                             : whole_number(config, "sliding_window_pattern");
}

/// layer_types say it, Qwen's max_window_layers, or how often a layer without a window comes.
bool has_window(const Json& config, int64_t layer) {
  const Json type = listed(config, "layer_types", layer);
  if (type.is_string()) return type == "sliding_attention";
  if (config.contains("max_window_layers")) {
    return layer >= whole_number(config, "max_window_layers");
  }
  const int64_t every = layers_of_window_pattern(config);
  return every == 0 || (layer + 1) % every != 0;
}

/// The layers with a window; empty without one. A window that is longer than the longest sequence
/// changes nothing (Phi-4-mini).
Pattern set_windows(const Json& config, Json& model) {
  const int64_t window = whole_number(model, "sliding_window");
  if (window == 0) return {};
  Pattern pattern = pattern_of(model, [&](int64_t layer) { return has_window(config, layer); });
  const bool is_used = std::count(pattern.begin(), pattern.end(), 1) > 0;
  if (!is_used || window > whole_number(model, "max_position_embeddings")) {
    model.erase("sliding_window");
  } else if (const Json freq = as_frequency(pattern, 0); freq != Json::array({0})) {
    model["window_attn_skip_freq"] = freq;
  }
  return pattern;
}

/// no_rope_layers has a 1 for a layer with positions (SmolLM3Config).
bool is_listed_with_rope(const Json& config, int64_t layer) {
  const int64_t every = std::max<int64_t>(whole_number(config, "no_rope_layer_interval"), 1);
  const Json said = listed(config, "no_rope_layers", layer);
  return said.is_number() ? said != 0 : (layer + 1) % every != 0;
}

/// Cohere2Attention and Exaone4Attention turn heads by their positions in layers with a window
/// alone, and the latter in all layers of a model without one.
void set_layers_without_rope(const Json& config,
                             const std::string& without_rope,
                             const Pattern& windows,
                             Json& model) {
  Pattern with_rope;
  if (without_rope == "no_window") with_rope = windows;
  if (without_rope == "no_rope_layers") {
    with_rope =
        pattern_of(model, [&](int64_t layer) { return is_listed_with_rope(config, layer); });
  }
  Pattern without;
  for (const int64_t layer : with_rope) without.push_back(1 - layer);
  if (const Json freq = as_frequency(without, 1); freq != Json::array({0})) {
    model["no_rope_freq"] = freq;
  }
}

}  // namespace

int64_t whole_number(const Json& tree, const char* key) {
  constexpr int64_t kMost = 1'000'000'000;
  const bool has = tree.contains(key) && tree[key].is_number_integer();
  return has ? std::clamp<int64_t>(tree[key].get<int64_t>(), 0, kMost) : 0;
}

void set_layer_patterns(const Json& config, const std::string& without_rope, Json& model) {
  if (whole_number(model, "num_layers") > kMostListedLayers) return;
  set_expert_layers(config, model);
  set_layers_without_rope(config, without_rope, set_windows(config, model), model);
}

}  // namespace sim
