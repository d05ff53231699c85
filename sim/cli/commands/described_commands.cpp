#include "sim/cli/commands/described_commands.h"

namespace sim {
namespace {

std::vector<DescribedFlag> described_flags(const CLI::App& app) {
  std::vector<DescribedFlag> flags;
  for (const CLI::Option* option : app.get_options()) {
    const bool is_switch = option->get_items_expected_max() == 0;
    for (const std::string& name : option->get_lnames()) {
      flags.push_back(
          {"--" + name, is_switch ? "" : option->get_type_name(), option->get_description()});
    }
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
