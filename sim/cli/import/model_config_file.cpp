#include "sim/cli/import/model_config_file.h"

#include <algorithm>

#include "estimator/base/database.h"
#include "sim/cli/import/glob.h"
#include "sim/cli/import/tree_entries.h"

namespace onerank_data {
extern const std::string_view import_hf_json;
extern const std::string_view import_hf_models_json;
}  // namespace onerank_data

namespace sim {

/// What a family of models has without saying it (transformers 4.57.3).
struct FamilyRow {
  std::vector<std::string> types;
  std::string technique;
  bool latent = false;
  std::string mlp;
  estimator::JsonValue config;
  estimator::JsonValue model;
};
template <class Visitor>
void visit_fields(Visitor& visit, FamilyRow& row) {
  visit("types", row.types, "values of model_type");
  visit("technique", row.technique, "what its layers have that is not modelled");
  visit("latent", row.latent, "DeepSeek's attention and experts");
  visit(
      "mlp", row.mlp, "gated or plain, whatever its activation is; empty: as the activation says");
  visit("config", row.config, "defaults of the class of its configuration");
  visit("model", row.model, "fields of a plan's model that no key says");
}

namespace {

using estimator::Json;

const FamilyRow& family_of(const std::string& type) {
  static const auto rows =
      estimator::read_database<FamilyRow>(onerank_data::import_hf_models_json, "hf_models.json");
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const FamilyRow& row) {
    return std::any_of(row.types.begin(), row.types.end(), [&](const std::string& pattern) {
      return matches_glob(type, pattern);
    });
  });
  return *found;  // the last row is for all types
}

int64_t whole(const Json& tree, const char* key) {
  constexpr int64_t kMost = 1'000'000'000;
  const bool has = tree.contains(key) && tree[key].is_number_integer();
  return has ? std::clamp<int64_t>(tree[key].get<int64_t>(), 0, kMost) : 0;
}

constexpr const char* kMlp = "mlp-of-family";

/// Defaults of the class, under what the file says. A null of the file stays one.
Json with_defaults(const Json& tree, const FamilyRow& family) {
  Json config = family.config.json().is_object() ? family.config.json() : Json::object();
  config.update(tree);
  return config;
}

/// Those of the class, those of the file, and what rows depend on beside them.
std::vector<SourceEntry> family_entries(const FamilyRow& family,
                                        const Json& tree,
                                        const std::string& text,
                                        const std::string& origin) {
  std::vector<SourceEntry> entries;
  if (family.config.json().is_object()) {
    entries = entries_of_tree(family.config.json(), "", "default of its class");
  }
  for (SourceEntry& entry : entries_of_tree(tree, text, origin)) entries.push_back(entry);
  entries.push_back({.key = kMlp, .values = {family.mlp}, .place = origin});
  return entries;
}

/// Which layers have experts: DeepseekV3DecoderLayer asks for first_k_dense_replace, and
/// Qwen3MoeDecoderLayer for mlp_only_layers and decoder_sparse_step.
void set_expert_layers(const Json& config, Json& model) {
  constexpr int64_t kMostLayers = 10'000;
  const int64_t layers = whole(model, "num_layers");
  if (whole(model, "num_experts") == 0 || layers > kMostLayers) return;
  const int64_t dense = whole(config, "first_k_dense_replace");
  const int64_t step = std::max<int64_t>(whole(config, "decoder_sparse_step"), 1);
  const Json only = config.value("mlp_only_layers", Json::array());
  Json pattern = Json::array();
  for (int64_t layer = 0; layer < layers; ++layer) {
    const bool is_dense =
        layer < dense || (layer + 1) % step != 0 ||
        std::any_of(only.begin(), only.end(), [&](const Json& said) { return said == layer; });
    pattern.push_back(is_dense ? 0 : 1);
  }
  if (std::count(pattern.begin(), pattern.end(), 0) > 0) model["moe_layer_freq"] = pattern;
}

/// Shared experts of DeepSeek are as wide as routed ones, and head_dim is not the width of a head
/// (configuration_deepseek_v3.py).
void finish_latent(const Json& config, Json& model) {
  model.erase("kv_channels");
  model.erase("num_query_groups");
  if (const int64_t shared =
          whole(config, "n_shared_experts") * whole(config, "moe_intermediate_size");
      shared > 0) {
    model["moe_shared_expert_intermediate_size"] = shared;
  }
  if (model.contains("moe_router_num_groups") && model["moe_router_num_groups"] == 1) {
    model.erase("moe_router_num_groups");
    model.erase("moe_router_group_topk");
  }
}

}  // namespace

bool is_hf_config(const Json& tree) {
  return tree.is_object() && (tree.contains("model_type") || tree.contains("architectures"));
}

ImportedPlan import_hf_config(const Json& tree,
                              const std::string& text,
                              const std::string& origin) {
  static const KeyTable table = {.program = "transformers",
                                 .rows = read_key_rows(onerank_data::import_hf_json, "hf.json"),
                                 .defaults = {},
                                 .flags = false};
  const std::string type = tree.contains("model_type") ? scalar_text(tree["model_type"]) : "";
  const FamilyRow& family = family_of(type);
  ImportedPlan plan = import_entries(family_entries(family, tree, text, origin), table, origin);
  std::erase_if(plan.unknown, [](const SourceEntry& entry) { return entry.key == kMlp; });
  if (!family.technique.empty()) {
    add_technique(
        plan,
        family.technique,
        {.key = "model_type", .values = {type}, .place = place_of("model_type", text, origin)});
  }
  Json model = family.model.json().is_object() ? family.model.json() : Json::object();
  if (const Json said = said_key(plan, "model"); said.is_object()) model.update(said);
  const Json config = with_defaults(tree, family);
  if (family.latent) finish_latent(config, model);
  set_expert_layers(config, model);
  set_key(plan, "model", model);
  return plan;
}

}  // namespace sim
