#include "sim/cli/commands/described_commands.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "sim/cli/input/offered_words.h"
#include "sim/cli/values/plan_flag_table.h"

namespace sim {
namespace {

/// The headings in the order of every help: what is run, then how, then what is printed.
std::vector<std::string> heading_order() {
  std::vector<std::string> order = {"Plan", "Search", "Sizes"};
  for (const PlanFlagGroup& group : plan_flag_groups()) order.push_back(group.title);
  order.insert(order.end(), {"Time", "Execution", "Memory files", "Output", "Other"});
  return order;
}

/// The place of a heading in the order; unknown ones come last. "Memory files (of several ranks:
/// ...)" begins with its heading.
std::size_t heading_place(const std::string& group) {
  static const std::vector<std::string> order = heading_order();
  const auto exact = std::find(order.begin(), order.end(), group);
  if (exact != order.end()) return static_cast<std::size_t>(exact - order.begin());
  const auto begins = [&](const std::string& heading) { return group.starts_with(heading + " ("); };
  return static_cast<std::size_t>(std::find_if(order.begin(), order.end(), begins) - order.begin());
}

/// With the name first that the help and the messages use.
std::vector<std::string> option_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  const PlanFlag* const flag = names.empty() ? nullptr : find_plan_flag(names.front());
  if (flag != nullptr) {
    const auto main = std::find(names.begin(), names.end(), flag->short_name());
    std::rotate(names.begin(), main, main + 1);
  }
  return names;
}

std::string option_help(const CLI::Option& option) {
  const std::string& help = option.get_description();
  const std::string value = option.get_default_str();
  return value.empty() ? help : fmt::format("{} (default: {})", help, value);
}

DescribedFlag described_option(const CLI::Option& option, std::vector<std::string> names) {
  constexpr const char* kNoHeading = "Options";  // CLI11's
  const bool is_switch = option.get_items_expected_max() == 0;
  const std::string& group = option.get_group();
  return {.names = std::move(names),
          .value = is_switch ? "" : option.get_type_name(),
          .help = option_help(option),
          .group = group == kNoHeading ? "Other" : group,
          .words = offered_words(option)};
}

/// "FILE", "[PLAN]" or "PROGRAM...", as it stands behind the command.
std::string usage_name(const CLI::Option& option) {
  std::string name = option.get_name(true);
  if (option.get_items_expected_max() > 1) name += "...";
  return option.get_required() ? name : "[" + name + "]";
}

}  // namespace

DescribedCommand described_command(const CLI::App& app) {
  DescribedCommand command{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    if (option->get_positional()) {
      command.arguments.push_back(described_option(*option, {usage_name(*option)}));
    }
    std::vector<std::string> names = option_names(*option);
    if (!names.empty()) command.flags.push_back(described_option(*option, std::move(names)));
  }
  std::stable_sort(command.flags.begin(), command.flags.end(), [](const auto& a, const auto& b) {
    return heading_place(a.group) < heading_place(b.group);
  });
  return command;
}

std::vector<DescribedCommand> described_commands(const CLI::App& root) {
  std::vector<DescribedCommand> commands;
  for (const CLI::App* app : root.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(described_command(*app));
  }
  return commands;
}

}  // namespace sim
