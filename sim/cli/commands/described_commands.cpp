#include "sim/cli/commands/described_commands.h"

namespace sim {
namespace {

std::vector<DescribedFlag> described_flags(const CLI::App& app) {
  std::vector<DescribedFlag> flags;
  for (const CLI::Option* option : app.get_options()) {
    DescribedFlag flag;
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    if (flag.names.empty()) continue;
    const bool is_switch = option->get_items_expected_max() == 0;
    if (!is_switch) flag.value = option->get_type_name();
    flag.help = option->get_description();
    flags.push_back(std::move(flag));
  }
  return flags;
}

}  // namespace

std::vector<DescribedCommand> described_commands(const CLI::App& root) {
  std::vector<DescribedCommand> commands;
  for (const CLI::App* app : root.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back({app->get_name(), app->get_description(), described_flags(*app)});
  }
  return commands;
}

}  // namespace sim
