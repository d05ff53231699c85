#include "estimator/what_if/typed_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "estimator/base/contains.h"
#include "estimator/base/fields.h"
#include "estimator/base/text.h"
#include "estimator/compose/pieces.h"
#include "estimator/plan/option_table.h"
#include "estimator/what_if/option_paths.h"

namespace estimator {
namespace {

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  if (value.empty()) return "even";  // layers_per_stage
  std::vector<std::string> fields;
  for (const Json& field : value) fields.push_back(value_text(field));
  return fmt::format("{}", fmt::join(fields, ","));
}

/// What to type to make this flag write the value, or "" when it cannot.
std::string typed(const OptionFlag& flag, const Json& value) {
  const std::string& name = flag.names.back();
  if (flag.constant.empty()) return name + " " + shell_word(value_text(value));
  const Json constant = Json::parse(flag.constant);
  if (value == constant) return name;
  const bool turns_off = constant.is_boolean() && value.is_boolean();
  return turns_off ? name + "=false" : "";
}

std::string flag_to_type(const PlanEdit& edit) {
  if (const PlanOption* option = find_plan_option(edit.path)) {
    for (const OptionFlag& flag : option->flags) {
      std::string text = typed(flag, edit.value.json());
      if (!text.empty()) return text;
    }
  }
  return "--set " + shell_word(edit.path + "=" + edit.value.json().dump());
}

/// What was said that a search takes over; the rest it finds itself.
PlanEdits said_beside_layouts(const PlanSpec& spec) {
  static const std::vector<std::string> kTakenSections = {
      "model", "cluster", "training", "memory", "time"};
  static const std::vector<std::string> kFound = {paths::kPreset,
                                                  paths::kNodes,
                                                  paths::kMicroBatch,
                                                  paths::kGlobalBatch,
                                                  paths::kAccumulation,
                                                  paths::kRecompute,
                                                  "training.recompute_modules",
                                                  paths::kSelectiveOption};
  PlanEdits edits;
  for (const PlanOption& option : plan_options()) {
    const bool is_taken =
        contains(kTakenSections, option.section()) && !contains(kFound, option.path);
    if (is_taken && spec.says(option.path)) edits.push_back({option.path, spec.said(option.path)});
  }
  return edits;
}

}  // namespace

std::string flags_to_type(const PlanEdits& edits) {
  std::vector<std::string> flags;
  for (const PlanEdit& edit : edits) flags.push_back(flag_to_type(edit));
  return fmt::format("{}", fmt::join(flags, " "));
}

std::string search_to_type(const PlanSpec& spec, const Plan& plan, const SearchedGpus& gpus) {
  if (!obstacle_to_composition(plan).empty()) return "";
  if (plan.model_preset.empty()) return "";
  PlanEdits edits = merged({{paths::kPreset, plan.model_preset}}, said_beside_layouts(spec));
  // A search compares the time of one batch; without one, each GPU may have a sample.
  const bool says_batch = spec.says(paths::kGlobalBatch);
  edits.push_back(
      {paths::kGlobalBatch, says_batch ? spec.said(paths::kGlobalBatch) : Json(gpus.number)});
  return fmt::format("onerank search {} {} {}", flags_to_type(edits), gpus.flag, gpus.number);
}

}  // namespace estimator
