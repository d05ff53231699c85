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

/// What a family of models has without saying it: the defaults of its class in transformers.
struct FamilyRow {
  std::vector<std::string> types;
  std::string technique;
  bool latent = false;
  bool gated_gelu = false;
  estimator::JsonValue model;
};
template <class Visitor>
void visit_fields(Visitor& visit, FamilyRow& row) {
  visit("types", row.types, "values of model_type");
  visit("technique", row.technique, "what its layers have that is not modelled");
  visit("latent", row.latent, "DeepSeek's attention and experts");
  visit("gated_gelu", row.gated_gelu, "its gelu is that of a gated MLP");
  visit("model", row.model, "fields of a plan's model");
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

/// configuration_deepseek_v3.py: shared experts are as wide as routed ones, the first layers are
/// dense, and head_dim is not the width of a head.
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
  constexpr int64_t kMostLayers = 10'000;
  const int64_t layers = whole(config, "num_hidden_layers");
  const int64_t dense = whole(config, "first_k_dense_replace");
  if (dense == 0 || dense > layers || layers > kMostLayers) return;
  Json pattern = Json::array();
  for (int64_t layer = 0; layer < layers; ++layer) pattern.push_back(layer < dense ? 0 : 1);
  model["moe_layer_freq"] = pattern;
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
  ImportedPlan plan = import_entries(entries_of_tree(tree, text, origin), table, origin);
  const std::string type = tree.contains("model_type") ? scalar_text(tree["model_type"]) : "";
  const FamilyRow& family = family_of(type);
  if (!family.technique.empty()) {
    add_technique(
        plan,
        family.technique,
        {.key = "model_type", .values = {type}, .place = place_of("model_type", text, origin)});
  }
  Json model = family.model.json().is_object() ? family.model.json() : Json::object();
  if (const Json said = said_key(plan, "model"); said.is_object()) model.update(said);
  if (family.gated_gelu && model["activation"] == "gelu") model["activation"] = "geglu";
  if (family.latent) finish_latent(tree, model);
  set_key(plan, "model", model);
  return plan;
}

}  // namespace sim
