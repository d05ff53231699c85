#include "sim/cli/input/plan_flags.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <map>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/fields.h"
#include "estimator/base/text.h"
#include "estimator/resolve/plan_tree.h"
#include "sim/cli/input/flag_names.h"
#include "sim/cli/input/offered_words.h"
#include "sim/cli/values/flag_value.h"

namespace sim {
namespace {

using estimator::contains;
using estimator::find_in_tree;
using estimator::Json;
using estimator::set_in_tree;
using estimator::UserError;

/// "parallelism.tensor=8": the value is JSON, or else a word.
void apply_setting(const std::string& setting, Json& tree) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UserError({.what = "--set needs a key and a value",
                     .where = fmt::format("--set = \"{}\"", setting),
                     .help = "write --set parallelism.tensor=8"});
  }
  const std::string text = setting.substr(equals + 1);
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) value = text;
  std::string path = setting.substr(0, equals);
  if (const auto* option = estimator::find_plan_option(path)) path = option->path;
  set_in_tree(tree, path, std::move(value), "--set");
}

constexpr const char* kAllocatorKey = "memory.allocator";

/// Whether one value of the key may have commas.
bool has_commas(const std::string& path, estimator::OptionType type) {
  return type == estimator::OptionType::kWholeList || type == estimator::OptionType::kTextList ||
         path == kAllocatorKey;
}

std::vector<std::string> values_of(const std::string& path,
                                   estimator::OptionType type,
                                   const std::string& text) {
  if (text.find(';') != std::string::npos) return estimator::split(text, ';');
  if (has_commas(path, type)) return {text};
  return estimator::split(text, ',');
}

constexpr const char* kSetFlag = "--set";

/// The key and the values of "KEY=VALUE,VALUE"; no values where it has no "=".
TypedValues values_of_setting(const std::string& setting) {
  const std::size_t equals = setting.find('=');
  const std::string path = setting.substr(0, equals);
  TypedValues typed{fmt::format("{} {}", kSetFlag, path), path, {}};
  if (equals == std::string::npos) return typed;
  const auto* option = estimator::find_plan_option(path);
  typed.values = values_of(path,
                           option == nullptr ? estimator::OptionType::kText : option->type,
                           setting.substr(equals + 1));
  return typed;
}

/// "parallelism.zero_stage = 3", which --fsdp says without a value.
std::string switch_text(const PlanFlag& flag) {
  const Json constant = Json::parse(flag.said.constant);
  return fmt::format(
      "{} = {}", flag.path, constant.is_string() ? constant.get<std::string>() : constant.dump());
}

}  // namespace

void PlanFlags::add_flag(CLI::App& app, const PlanFlag& flag, const std::string& group) {
  CLI::Option* option =
      flag.is_switch() ? app.add_flag(flag.names()) : app.add_option(flag.names());
  if (!flag.is_switch()) option->type_name(flag.placeholder);
  offer(option->description(flag.help)->group(group), flag.words);
  registered_.push_back({&flag, option});
}

void PlanFlags::add_keys_to(CLI::App& app, const std::vector<std::string>& keys) {
  for (const PlanFlagGroup& group : plan_flag_groups()) {
    for (const PlanFlag& flag : group.flags) {
      if (contains(keys, flag.path)) add_flag(app, flag, group.title);
    }
  }
}

void PlanFlags::add_to(CLI::App& app, std::string_view only_group) {
  for (const PlanFlagGroup& group : plan_flag_groups()) {
    if (!only_group.empty() && only_group != group.title) continue;
    for (const PlanFlag& flag : group.flags) add_flag(app, flag, group.title);
  }
  if (!only_group.empty()) return;
  app.add_option("--set", settings_, "any other key of the plan: --set training.seed=7")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->group("Plan");
}

bool PlanFlags::any_given() const {
  for (const Registered& given : registered_) {
    if (given.option->count() > 0) return true;
  }
  return !settings_.empty();
}

std::string PlanFlags::given_beyond(const std::vector<std::string>& keys) const {
  for (const auto& [flag, option] : registered_) {
    if (option->count() > 0 && !contains(keys, flag->path)) return flag->short_name();
  }
  return settings_.empty() ? "" : "--set";
}

std::vector<TypedValues> PlanFlags::several_values() const {
  std::vector<TypedValues> several;
  for (const auto& [flag, option] : registered_) {
    if (option->count() == 0 || flag->path.empty()) continue;
    several.push_back({flag->short_name(),
                       flag->path,
                       values_of(flag->path, flag->type, option->results().back())});
  }
  for (const std::string& setting : settings_) several.push_back(values_of_setting(setting));
  std::erase_if(several, [](const TypedValues& typed) { return typed.values.size() < 2; });
  return several;
}

void PlanFlags::choose(const TypedChoice& choice) {
  for (const auto& [flag, option] : registered_) {
    if (flag->short_name() == choice.flag) chosen_[flag] = choice.value;
  }
  for (std::string& setting : settings_) {
    const TypedValues typed = values_of_setting(setting);
    if (typed.flag == choice.flag) setting = typed.path + "=" + choice.value;
  }
}

std::string PlanFlags::typed(const PlanFlag& flag, const CLI::Option& option) const {
  const auto chosen = chosen_.find(&flag);
  return chosen == chosen_.end() ? option.results().back() : chosen->second;
}

std::string PlanFlags::typed(const std::string& path) const {
  for (const auto& [flag, option] : registered_) {
    if (option->count() > 0 && flag->path == path) return typed(*flag, *option);
  }
  return "";
}

std::string PlanFlags::key_of(const CLI::Option& option, const std::string& value) const {
  for (const Registered& flag : registered_) {
    if (flag.option == &option) return flag.flag->path;
  }
  const bool is_setting = option.check_lname(kSetFlag + 2);
  return is_setting ? values_of_setting(value).path : "";
}

void PlanFlags::overlay(Json& tree, const std::string& except) const {
  std::map<std::string, const PlanFlag*> writers;
  for (const auto& [flag, option] : registered_) {
    const bool is_left_out = !except.empty() && flag->path == except;
    if (option->count() == 0 || is_left_out || flag->path.empty()) continue;
    const Json value = flag_value(*flag, typed(*flag, *option));
    const auto [writer, is_first] = writers.emplace(flag->path, flag);
    if (!is_first && flag->said.yields) continue;
    const bool is_refused = !is_first && !writer->second->said.yields;
    if (is_refused && find_in_tree(tree, flag->path) != value) {
      throw UserError(
          {.what = "two flags say different things",
           .where = fmt::format("{} and {}", writer->second->short_name(), flag->short_name()),
           .help = "keep one of the two"});
    }
    const bool names_the_model = flag->path == "model.preset";
    if (names_the_model) set_in_tree(tree, "model", nullptr, flag->short_name());
    set_in_tree(tree, flag->path, value, flag->short_name());
  }
  for (const std::string& setting : settings_) apply_setting(setting, tree);
}

std::string PlanFlags::with_flag_names(std::string text) const {
  for (const auto& [flag, option] : registered_) {
    if (option->count() == 0 || flag->path.empty()) continue;
    if (flag->is_switch()) replace_name(text, switch_text(*flag), flag->short_name());
    replace_name(text, flag->path, flag->short_name());
  }
  return text;
}

}  // namespace sim
