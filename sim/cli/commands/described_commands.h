// A description of the command line, read from its parser. The completions of shells and the manual
// page are made from it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace sim {

struct DescribedFlag {
  std::vector<std::string> names;  ///< "--tp" and its aliases
  std::string value;               ///< placeholder of its value in the help, "N"; "" for a switch
  std::string help;
};

struct DescribedCommand {
  std::string name;
  std::string help;
  std::vector<DescribedFlag> flags;
};

/// The subcommands of `root`, each with its flags, in the order of the help.
std::vector<DescribedCommand> described_commands(const CLI::App& root);

}  // namespace sim
