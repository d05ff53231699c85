#include "sim/cli/import/deepspeed_config.h"

#include <algorithm>
#include <array>

#include "estimator/base/database.h"
#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/resolve/plan_tree.h"
#include "sim/cli/import/tree_entries.h"

namespace onerank_data {
extern const std::string_view import_deepspeed_json;
extern const std::string_view import_deepspeed_defaults_json;
}  // namespace onerank_data

namespace sim {
namespace {

using estimator::Json;

/// The type of the parameters is what is enabled; "auto" leaves it to flags. An optimizer of the
/// file has one group of parameters.
std::vector<SourceEntry> implied(const Json& tree, const std::string& origin) {
  const auto enabled = [&](const char* section) {
    return estimator::find_in_tree(tree, std::string(section) + ".enabled");
  };
  std::vector<SourceEntry> entries = {
      {.key = "framework", .values = {"deepspeed"}, .place = "default of DeepSpeed"}};
  std::string dtype = "fp32";
  for (const char* type : {"fp16", "bf16"}) {
    if (enabled(type) == true) dtype = type;
    if (enabled(type) == "auto") dtype = "";
  }
  if (!dtype.empty()) entries.push_back({.key = "dtype", .values = {dtype}, .place = origin});
  if (!estimator::find_in_tree(tree, "optimizer.type").is_null()) {
    entries.push_back({.key = "decay-groups", .values = {"false"}, .place = origin});
  }
  return entries;
}

/// Numbers of elements are often written 5e8, which JSON reads as 500000000.0.
void drop_empty_fractions(std::vector<SourceEntry>& entries) {
  for (SourceEntry& entry : entries) {
    for (std::string& value : entry.values) {
      const bool is_whole =
          value.ends_with(".0") && value.find_first_not_of("0123456789") == value.size() - 2;
      if (is_whole) value.resize(value.size() - 2);
    }
  }
}

/// Samples of a micro-batch follow from the whole batch and the ranks, or are the trainer's: flags
/// say them.
void ask_for_micro_batch(const std::string& origin, ImportedPlan& plan) {
  constexpr const char* kPath = "training.micro_batch_size";
  if (!said_key(plan, kPath).is_null()) return;
  plan.unset.push_back(
      {{.key = "train_micro_batch_size_per_gpu", .values = {}, .place = origin}, kPath});
}

/// DeepSpeed refuses it too.
void refuse_two_types(const Json& tree, const std::string& origin) {
  const auto enabled = [&](const char* key) { return estimator::find_in_tree(tree, key) == true; };
  if (!enabled("fp16.enabled") || !enabled("bf16.enabled")) return;
  throw estimator::UserError({.what = "two types of parameters are enabled",
                              .where = origin + ": fp16.enabled, bf16.enabled",
                              .help = "enable one of them"});
}

}  // namespace

bool is_deepspeed_config(const Json& tree) {
  constexpr std::array<const char*, 3> kKeys = {
      "zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"};
  return tree.is_object() && std::any_of(kKeys.begin(), kKeys.end(), [&](const char* key) {
           return tree.contains(key);
         });
}

ImportedPlan import_deepspeed_config(const Json& tree,
                                     const std::string& text,
                                     const std::string& origin) {
  static const KeyTable table = {
      .program = "DeepSpeed",
      .rows = read_key_rows(onerank_data::import_deepspeed_json, "deepspeed.json"),
      .defaults = estimator::read_database<DefaultRow>(onerank_data::import_deepspeed_defaults_json,
                                                       "deepspeed_defaults.json"),
      .flags = false};
  refuse_two_types(tree, origin);
  std::vector<SourceEntry> entries = entries_of_tree(tree, text, origin);
  drop_empty_fractions(entries);
  for (SourceEntry& entry : implied(tree, origin)) entries.push_back(std::move(entry));
  ImportedPlan plan = import_entries(std::move(entries), table, origin);
  ask_for_micro_batch(origin, plan);
  return plan;
}

}  // namespace sim
