#include "sim/cli/import/megatron_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "estimator/base/fields.h"
#include "estimator/base/glob.h"
#include "sim/cli/import/finish_megatron_plan.h"
#include "sim/cli/import/megatron_arguments.h"
#include "sim/cli/import/tree_entries.h"

namespace onerank_data {
extern const std::string_view import_megatron_config_json;
}  // namespace onerank_data

namespace sim {
namespace {

using estimator::Json;

constexpr const char* kTargetField = "_target_";
constexpr const char* kArgumentsField = "_args_";

const std::vector<KeyRow>& own_rows() {
  static const auto rows =
      read_key_rows(onerank_data::import_megatron_config_json, "megatron_config.json");
  return rows;
}

KeyTable megatron_config_table(const std::string& program) {
  KeyTable table = megatron_table();
  table.program = program;
  table.rows.insert(table.rows.begin(), own_rows().begin(), own_rows().end());
  return table;
}

bool is_container(const Json& tree) {
  return tree.contains(kTargetField) && tree[kTargetField].is_string() &&
         tree[kTargetField].get<std::string>().ends_with(".ConfigContainer");
}

/// An object that is a value: torch.bfloat16 is {_target_: torch.bfloat16, _call_: false}, and the
/// fifth of an enumeration {_target_: AttnBackend, _args_: [5]}.
bool is_value(const Json& object) {
  for (const auto& [key, value] : object.items()) {
    if (!key.starts_with('_')) return false;
  }
  return object.contains(kTargetField);
}

/// "bfloat16", or "5".
std::string text_of_value(const Json& object) {
  std::vector<std::string> arguments;
  if (object.contains(kArgumentsField) && object[kArgumentsField].is_array()) {
    for (const Json& argument : object[kArgumentsField]) arguments.push_back(scalar_text(argument));
  }
  if (!arguments.empty()) return fmt::format("{}", fmt::join(arguments, ","));
  const std::string target = scalar_text(object[kTargetField]);
  return target.substr(target.rfind('.') + 1);
}

/// The tree with such objects as texts, and True and False as Python reads them.
Json with_plain_values(const Json& tree) {
  if (tree == "True" || tree == "False") return tree == "True";
  if (!tree.is_object()) return tree;
  if (is_value(tree)) return text_of_value(tree);
  Json plain = Json::object();
  for (const auto& [key, value] : tree.items()) {
    plain[key] = key == kTargetField ? value : with_plain_values(value);
  }
  return plain;
}

bool has_key(const KeyRow& row, const std::string& key) {
  return estimator::matches_any_glob(key, row.keys);
}

bool is_named(const std::string& key) {
  return std::any_of(
      own_rows().begin(), own_rows().end(), [&](const KeyRow& row) { return has_key(row, key); });
}

/// Whether the field does what Megatron-LM does without an argument, which is false or none then. A
/// row with the field's own name says what else false means.
bool says_nothing(const SourceEntry& entry) {
  if (entry.values.empty()) return true;
  return entry.value() == "false" &&
         std::none_of(own_rows().begin(), own_rows().end(), [&](const KeyRow& row) {
           return std::find(row.keys.begin(), row.keys.end(), entry.key) != row.keys.end();
         });
}

/// Fields whose arguments divide the layers among the stages, and have other names.
constexpr std::pair<std::string_view, std::string_view> kArgumentNames[] = {
    {"num-layers-in-first-pipeline-stage", "decoder-first-pipeline-num-layers"},
    {"num-layers-in-last-pipeline-stage", "decoder-last-pipeline-num-layers"},
};

/// The name of the argument: the field's, without its section where the table has no other name for
/// it.
void name_as_argument(SourceEntry& entry) {
  const std::size_t dot = entry.key.find('.');
  if (dot != entry.key.npos && !is_named(entry.key)) entry.key.erase(0, dot + 1);
  for (const auto& [field, argument] : kArgumentNames) {
    if (entry.key == field) entry.key = argument;
  }
}

/// The core takes groups of queries wherever their number is given; Megatron-LM has a switch.
void add_switches(std::vector<SourceEntry>& entries) {
  const SourceEntry* groups = find_entry(entries, "num-query-groups");
  if (groups == nullptr) return;
  entries.push_back({.key = "group-query-attention", .values = {}, .place = groups->place});
}

/// Of entries with one key, the last that says something.
std::vector<SourceEntry> last_of_each(std::vector<SourceEntry> entries) {
  std::map<std::string, std::size_t> last;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].values.empty() || !last.contains(entries[i].key)) last[entries[i].key] = i;
  }
  std::vector<SourceEntry> kept;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (last[entries[i].key] == i) kept.push_back(std::move(entries[i]));
  }
  return kept;
}

/// A layout says how many chunks there are; the core also keeps their number.
bool follows_from_layout(const SourceEntry& entry, const std::vector<SourceEntry>& entries) {
  if (entry.key != "virtual-pipeline-model-parallel-size") return false;
  const SourceEntry* layout = find_entry(entries, "pipeline-model-parallel-layout");
  return layout != nullptr && !layout->values.empty();
}

}  // namespace

bool is_megatron_config(const Json& tree) {
  if (!tree.is_object()) return false;
  const bool is_yaml_cfg = tree.contains("language_model") && tree.contains("model_parallel");
  return is_yaml_cfg || is_container(tree);
}

ImportedPlan import_megatron_config(const Json& tree,
                                    const std::string& text,
                                    const std::string& origin) {
  return import_megatron_fields(entries_of_tree(with_plain_values(tree), text, origin),
                                {is_container(tree) ? "Megatron-Bridge" : "Megatron-LM"},
                                origin);
}

ImportedPlan import_megatron_fields(std::vector<SourceEntry> entries,
                                    const MegatronFields& fields,
                                    const std::string& origin) {
  std::vector<SourceEntry> said, silent;
  for (SourceEntry& entry : entries) name_as_argument(entry);
  entries = last_of_each(std::move(entries));
  for (const SourceEntry& entry : entries) {
    const bool is_silent = says_nothing(entry) || follows_from_layout(entry, entries);
    (is_silent ? silent : said).push_back(entry);
  }
  add_switches(said);
  ImportedPlan plan =
      import_entries(std::move(said), megatron_config_table(fields.program), origin);
  if (!fields.preset.empty()) set_key(plan, "model.preset", fields.preset);
  finish_megatron_plan(plan);
  plan.without_effect.insert(plan.without_effect.end(), silent.begin(), silent.end());
  return plan;
}

}  // namespace sim
