#include "sim/cli/values/plan_flag_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "estimator/hardware/hardware.h"
#include "estimator/plan/model_config.h"
#include "sim/cli/values/byte_sizes.h"

namespace sim {
namespace {

using estimator::OptionFlag;
using estimator::OptionType;
using estimator::PlanOption;

constexpr const char* kExpertFlags = "Mixture of experts";
constexpr const char* kCostFlags = "Failures and cost";

/// The heading of a key: its section's, but for the keys of these subjects.
std::string heading_of(const PlanOption& option) {
  const std::string key = option.key();
  if (key.starts_with("moe_") || key == "num_experts") return kExpertFlags;
  if (key == "gpu_deviation" || key == "usd_per_gpu_hour") return kCostFlags;
  constexpr std::array<std::array<const char*, 2>, 7> kTitles = {{{"model", "Model"},
                                                                  {"cluster", kClusterFlags},
                                                                  {"parallelism", "Parallelism"},
                                                                  {"training", "Training"},
                                                                  {"memory", "Memory"},
                                                                  {"time", "Time"},
                                                                  {"reliability", kCostFlags}}};
  const auto title = std::find_if(
      kTitles.begin(), kTitles.end(), [&](const auto& row) { return option.section() == row[0]; });
  return (*title)[1];
}

std::string placeholder_of(const PlanOption& option) {
  switch (option.type) {
    case OptionType::kSwitch:
      return "true|false";
    case OptionType::kWhole:
      return is_size(option.path) ? "SIZE" : "N";
    case OptionType::kReal:
      return "X";
    case OptionType::kText:
    case OptionType::kChoice:
      return "NAME";
    case OptionType::kWholeList:
      return "N,N,...";
    case OptionType::kTextList:
      return "NAME,...";
  }
  throw std::logic_error("an option of no type");
}

/// What holds without the flag. Nothing is said of a switch, of an option that follows from others
/// (its help says how), and of an empty list.
std::string default_of(const PlanOption& option) {
  if (option.type == OptionType::kSwitch) return "";
  std::string text = option.default_value.value_or("");
  if (text == "[]") return "";
  std::erase(text, '"');
  return text;
}

/// "order of a stage's forwards and backwards (1f1b, gpipe, zb-h1; default: 1f1b)"
std::string help_of(const OptionFlag& flag, const PlanOption& option) {
  if (!flag.constant.empty()) return flag.help;
  std::vector<std::string> facts;
  if (!option.choices.empty()) facts.push_back(fmt::format("{}", fmt::join(option.choices, ", ")));
  const std::string value = default_of(option);
  const char* const unless = option.section() == "model" ? " without a preset" : "";
  if (!value.empty()) facts.push_back(fmt::format("default{}: {}", unless, value));
  return facts.empty() ? flag.help : fmt::format("{} ({})", flag.help, fmt::join(facts, "; "));
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const estimator::ModelPreset& preset : estimator::model_presets()) {
    names.push_back(preset.name);
    names.insert(names.end(), preset.aliases.begin(), preset.aliases.end());
  }
  return names;
}

std::vector<std::string> link_names() {
  std::vector<std::string> names;
  for (const estimator::Link& link : estimator::links()) names.push_back(link.id);
  return names;
}

/// The words of a choice, or the names of the list that a name is in.
std::vector<std::string> words_of(const PlanOption& option) {
  if (option.path == "model.preset") return model_names();
  if (option.path == "cluster.gpu") return estimator::gpu_names();
  if (option.key().ends_with("_link")) return link_names();
  return option.choices;
}

/// Switches of Megatron-LM that are taken and say nothing new.
struct TakenFlag {
  const char* heading;
  const char* name;
  const char* help;
};
constexpr std::array<TakenFlag, 3> kTakenFlags = {
    {{"Model", "--group-query-attention", "accepted; --num-query-groups says how many"},
     {kExpertFlags, "--moe-permute-fusion", "accepted; tokens always move in one kernel"},
     {"Training",
      "--use-torch-optimizer-for-cpu-offload",
      "accepted; Megatron-LM always uses PyTorch's AdamW"}}};

std::vector<PlanFlagGroup> make_groups() {
  std::vector<PlanFlagGroup> groups;
  for (const char* title : {"Model",
                            kExpertFlags,
                            "Parallelism",
                            "Training",
                            kClusterFlags,
                            kCostFlags,
                            "Memory",
                            "Time"}) {
    groups.push_back({title, {}});
  }
  const auto flags_under = [&](const std::string& title) -> std::vector<PlanFlag>& {
    const auto is_it = [&](const PlanFlagGroup& group) { return group.title == title; };
    return std::find_if(groups.begin(), groups.end(), is_it)->flags;
  };
  for (const PlanOption& option : estimator::plan_options()) {
    for (const OptionFlag& flag : option.flags) {
      flags_under(heading_of(option))
          .push_back({.said = flag,
                      .path = option.path,
                      .type = option.type,
                      .placeholder = placeholder_of(option),
                      .help = help_of(flag, option),
                      .words = words_of(option)});
    }
  }
  for (const TakenFlag& taken : kTakenFlags) {
    flags_under(taken.heading).push_back({.said = {.names = {taken.name}}, .help = taken.help});
  }
  std::erase_if(groups, [](const PlanFlagGroup& group) { return group.flags.empty(); });
  return groups;
}

}  // namespace

std::string PlanFlag::names() const { return fmt::format("{}", fmt::join(said.names, ",")); }

const std::vector<PlanFlagGroup>& plan_flag_groups() {
  static const std::vector<PlanFlagGroup> groups = make_groups();
  return groups;
}

const PlanFlag* find_plan_flag(std::string_view name) {
  for (const PlanFlagGroup& group : plan_flag_groups()) {
    for (const PlanFlag& flag : group.flags) {
      const std::vector<std::string>& names = flag.said.names;
      if (std::find(names.begin(), names.end(), name) != names.end()) return &flag;
    }
  }
  return nullptr;
}

}  // namespace sim
