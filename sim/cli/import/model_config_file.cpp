#include "sim/cli/import/model_config_file.h"

#include <algorithm>

#include "estimator/base/database.h"
#include "estimator/base/fields.h"
#include "estimator/base/glob.h"
#include "sim/cli/import/model_layers.h"
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
  std::string without_rope;
  int64_t extra_positions = 0;
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
  visit("without_rope",
        row.without_rope,
        "layers without rotary positions: listed (no_rope_layers), or those without a window "
        "(no_window)");
  visit("extra_positions", row.extra_positions, "learned positions beyond the longest sequence");
  visit("config", row.config, "defaults of the class of its configuration");
  visit("model", row.model, "fields of a plan's model that no key says");
}

namespace {

using estimator::Json;

const FamilyRow& family_of(const std::string& type) {
  static const auto rows =
      estimator::read_database<FamilyRow>(onerank_data::import_hf_models_json, "hf_models.json");
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const FamilyRow& row) {
    return estimator::matches_any_glob(type, row.types);
  });
  return *found;  // the last row is for all types
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

/// Shared experts are one MLP, as wide as so many routed ones; where those have no width of their
/// own, it is that of the MLP.
void set_shared_experts(const Json& config, Json& model) {
  const int64_t count =
      whole_number(config, "n_shared_experts") + whole_number(config, "moe_num_shared_experts");
  const int64_t own = whole_number(model, "moe_ffn_hidden_size");
  const int64_t width = count * (own > 0 ? own : whole_number(model, "ffn_hidden_size"));
  if (whole_number(model, "num_experts") == 0 || width == 0) return;
  model["moe_shared_expert_intermediate_size"] = width;
}

/// A router with one group has none.
void drop_single_group(Json& model) {
  if (model.contains("moe_router_num_groups") && model["moe_router_num_groups"] == 1) {
    model.erase("moe_router_num_groups");
    model.erase("moe_router_group_topk");
  }
}

/// In MLA head_dim is not the width of a head (configuration_deepseek_v3.py).
void finish_latent(Json& model) {
  model.erase("kv_channels");
  model.erase("num_query_groups");
}

/// The part of a head with positions (GPTJAttention); OPTLearnedPositionalEmbedding has two rows
/// before the first position.
void finish_positions(const FamilyRow& family, const Json& config, Json& model) {
  if (const int64_t turned = whole_number(config, "rotary_dim"); turned > 0) {
    const int64_t own = whole_number(model, "kv_channels");
    const int64_t heads = std::max<int64_t>(whole_number(model, "num_attention_heads"), 1);
    const int64_t width = own > 0 ? own : whole_number(model, "hidden_size") / heads;
    model["rotary_percent"] = static_cast<double>(turned) / static_cast<double>(width);
  }
  if (family.extra_positions > 0) {
    model["max_position_embeddings"] =
        whole_number(model, "max_position_embeddings") + family.extra_positions;
  }
}

/// OPT projects an embedding of another width (OPTDecoder).
void name_projected_embedding(const Json& config, const SourceEntry& use, ImportedPlan& plan) {
  const int64_t width = whole_number(config, "word_embed_proj_dim");
  if (width == 0 || width == whole_number(config, "hidden_size")) return;
  add_technique(plan, "projected-embedding", use);
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
  const SourceEntry use = {
      .key = "model_type", .values = {type}, .place = place_of("model_type", text, origin)};
  if (!family.technique.empty()) add_technique(plan, family.technique, use);
  Json model = family.model.json().is_object() ? family.model.json() : Json::object();
  if (const Json said = said_key(plan, "model"); said.is_object()) model.update(said);
  const Json config = with_defaults(tree, family);
  name_projected_embedding(config, use, plan);
  if (family.latent) finish_latent(model);
  drop_single_group(model);
  set_shared_experts(config, model);
  finish_positions(family, config, model);
  set_layer_patterns(config, family.without_rope, model);
  set_key(plan, "model", model);
  return plan;
}

}  // namespace sim
