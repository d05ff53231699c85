#include "estimator/resolve/resolve_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "estimator/base/field_words.h"
#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/options.h"
#include "estimator/resolve/plan_rules.h"
#include "estimator/resolve/sized_model.h"

namespace estimator {
namespace {

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const ModelPreset& preset : model_presets()) {
    names.push_back(preset.name);
    names.insert(names.end(), preset.aliases.begin(), preset.aliases.end());
  }
  return names;
}

/// A name of a hub has a slash; its model has a config.json, which is read unless the model is
/// known to have what is not built.
std::string help_for_unknown_model(const std::string& name) {
  std::string help = suggestion(bare_model_name(name), preset_names(), "see `onerank list models`");
  const bool may_be_read = name.find('/') != name.npos && find_field_word(name) == nullptr;
  if (!may_be_read) return help;
  if (help.ends_with('?')) help += " If not";
  return help + ", its config.json can be given as a file";
}

void read_preset(const Json& json, Plan& plan, const std::string& path, FieldReader& reader) {
  std::string name;
  reader.read(json, name, path);
  if (!json.is_string()) return;
  const std::optional<ModelPreset> preset = named_model(name);
  if (!preset) {
    reader.report(path, "unknown model", shown(json), help_for_unknown_model(name));
    return;
  }
  plan.model_preset = preset->name;
  plan.model = preset->config;
}

/// Sets a derived field of the preset back to "derive it" when a field that it derives from
/// changes, unless the preset has a value of its own there (GQA's groups, Llama's ffn_hidden_size).
void follow_changes(const Json& changes, ModelConfig& model) {
  const ModelConfig before = with_derived_fields(model);
  ModelConfig underived = before;
  underived.ffn_hidden_size = underived.num_query_groups = underived.kv_channels = 0;
  const ModelConfig derived = with_derived_fields(underived);
  const auto any_of = [&](std::initializer_list<const char*> keys) {
    return std::any_of(
        keys.begin(), keys.end(), [&](const char* k) { return changes.contains(k); });
  };
  if (any_of({"hidden_size", "activation"}) && before.ffn_hidden_size == derived.ffn_hidden_size) {
    model.ffn_hidden_size = 0;
  }
  if (any_of({"ffn_hidden_size", "hidden_size", "activation"}) &&
      before.moe_ffn_hidden_size == before.ffn_hidden_size) {
    model.moe_ffn_hidden_size = 0;
  }
  if (any_of({"num_attention_heads"}) && before.num_query_groups == derived.num_query_groups) {
    model.num_query_groups = 0;
  }
  if (any_of({"num_attention_heads", "hidden_size"}) && before.kv_channels == derived.kv_channels) {
    model.kv_channels = 0;
  }
}

/// "model": a preset's name, or {"preset", "overrides", and any field of ModelConfig}.
void read_model(const Json& json, Plan& plan, FieldReader& reader) {
  if (json.is_string()) return read_preset(json, plan, "model", reader);
  if (!json.is_object()) {
    reader.report(
        "model", "a model is needed here", shown(json), "write { \"preset\": \"llama3-8b\" }");
    return;
  }
  if (json.contains("preset")) read_preset(json["preset"], plan, "model.preset", reader);
  Json shape = json;
  shape.erase("preset");
  shape.erase("overrides");
  const auto apply = [&](const Json& fields, const std::string& path) {
    if (fields.is_object()) follow_changes(fields, plan.model);
    reader.read(fields, plan.model, path);
  };
  if (json.contains("overrides")) apply(json["overrides"], "model.overrides");
  if (!shape.empty()) apply(shape, "model");
}

/// What reads the documents of ours that are no plans.
struct DocumentReader {
  const char* kind;
  const char* help;
};
constexpr DocumentReader kDocumentReaders[] = {
    {"rank_profile", "`onerank estimate --profiles DIR` reads the profiles of a folder"},
    {"cluster_estimate", "`onerank diff A B` compares estimates"},
    {"peak_snapshot", "`onerank memory FILE` shows what fills the peak"},
    {"calibration", "give it with --calibration"}};

bool is_other_document(const Json& tree) {
  return tree.contains("schema_version") && tree.contains("kind") && tree["kind"].is_string();
}

void report_other_document(const Json& tree, FieldReader& reader) {
  const std::string kind = tree["kind"].get<std::string>();
  std::string help = "see `onerank list plans` for complete examples";
  for (const DocumentReader& known : kDocumentReaders) {
    if (kind == known.kind) help = known.help;
  }
  reader.report("kind", "this is not a plan, but another document of Onerank", kind, help);
}

Plan read_plan(const Json& tree, FieldReader& reader) {
  Plan plan;
  if (!tree.is_object()) {
    reader.report(
        "", "a plan is an object", shown(tree), "see `onerank list plans` for complete examples");
    return plan;
  }
  if (is_other_document(tree)) {
    report_other_document(tree, reader);
    return plan;
  }
  static const std::vector<std::string> kSections = {
      "name", "model", "cluster", "parallelism", "training", "memory", "time", "reliability"};
  for (const auto& [key, value] : tree.items()) {
    if (key == "$schema") continue;  // of the editor
    if (key == "name")
      reader.read(value, plan.name, key);
    else if (key == "model")
      read_model(value, plan, reader);
    else if (key == "cluster")
      reader.read(value, plan.cluster, key);
    else if (key == "parallelism")
      reader.read(value, plan.parallelism, key);
    else if (key == "training")
      reader.read(value, plan.training, key);
    else if (key == "memory")
      reader.read(value, plan.memory, key);
    else if (key == "time")
      reader.read(value, plan.time, key);
    else if (key == "reliability")
      reader.read(value, plan.reliability, key);
    else
      reader.report(key, "unknown key", "", suggestion(key, kSections));
  }
  if (!tree.contains("model")) {
    reader.report("model",
                  "the plan names no model",
                  "",
                  "give --model llama3-8b, see `onerank list models`");
  }
  return plan;
}

/// Without a width of its own, a head has its part of the hidden size: validate_args() in
/// megatron/training/arguments.py asserts that the heads divide it.
void check_heads(const ModelConfig& model,
                 const PlanContext& context,
                 std::vector<Problem>& problems) {
  const int64_t heads = model.num_attention_heads;
  const bool is_derived = model.kv_channels == 0 && !model.multi_latent_attention && heads > 0;
  if (!is_derived || model.hidden_size % heads == 0) return;
  problems.push_back({.what = "the heads do not divide the hidden size",
                      .where = fmt::format("{}: model.hidden_size = {}, model.num_attention_heads "
                                           "= {}",
                                           context.origin,
                                           model.hidden_size,
                                           heads),
                      .help = "give --kv-channels, the width of a head, or a multiple"});
}

/// Read, without defaults that follow from other values. Throws UserError for what cannot be read,
/// and for numbers out of range.
Plan read_in_range(const Json& tree, const PlanContext& context) {
  FieldReader reader(context.origin);
  Plan plan = read_plan(tree, reader);
  reader.throw_if_any();
  std::vector<Problem> problems;
  check_heads(plan.model, context, problems);
  plan.model = with_derived_fields(plan.model);
  for (BrokenRule& rule : numbers_out_of_range(plan, context)) {
    problems.push_back(std::move(rule.problem));
  }
  if (!problems.empty()) throw UserError(std::move(problems));
  return plan;
}

/// How experts are balanced is no part of a preset's shape: it gives way, unless it was said, where
/// the framework's router has no such loss.
void leave_out_balancing(const Json& tree, Plan& plan) {
  if (!traits_of(plan.training.framework).stacked_experts) return;
  const Json& model = tree["model"];
  const auto says = [](const Json& fields) { return fields.contains("moe_aux_loss_coeff"); };
  const bool is_said = says(model) || (model.contains("overrides") && says(model["overrides"]));
  if (!is_said) plan.model.moe_aux_loss_coeff = 0;
}

/// With all defaults; it may still break rules.
Plan filled_in(const Json& tree, const PlanContext& context) {
  Plan plan = read_in_range(tree, context);
  fill_in_defaults(plan, context);
  leave_out_balancing(tree, plan);
  return plan;
}

}  // namespace

Plan resolve_plan(const Json& tree, const PlanContext& context) {
  Plan plan = filled_in(tree, context);
  const std::vector<BrokenRule> broken = broken_rules(plan, context);
  if (broken.empty()) return plan;
  throw UserError(offer_remedies(broken, tree, [&](const Json& changed) {
    return broken_rules(filled_in(changed, context), context);
  }));
}

void check_readable(const Json& tree, const PlanContext& context) { read_in_range(tree, context); }

ClusterConfig resolve_cluster(const Json& cluster, const std::string& origin) {
  FieldReader reader(origin);
  ClusterConfig config;
  reader.read(cluster, config, "cluster");
  reader.throw_if_any();
  config.nodes.fill_in(1);
  config.gpus_per_node.fill_in(usual_gpus_per_node(config));
  fill_in_hardware(config);
  std::vector<Problem> problems;
  for (BrokenRule& rule : broken_cluster_rules(config)) {
    problems.push_back(std::move(rule.problem));
  }
  if (!problems.empty()) throw UserError(std::move(problems));
  return config;
}

}  // namespace estimator
