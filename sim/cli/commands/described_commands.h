// A description of the command line, read from its parser. The completions of shells and the manual
// page are made from it.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/input/cli_fwd.h"

namespace sim {

struct DescribedFlag {
  std::vector<std::string> names;  ///< "--tp", then its aliases; of an argument "PLAN"
  std::string value;               ///< placeholder of its value in the help, "N"; "" for a switch
  std::string help;                ///< with the default
  std::string group;               ///< the heading in the help: "Parallelism"
  std::vector<std::string>
      words;  ///< that its value may be, for completion; empty: a file, or free
};

struct DescribedCommand {
  std::string name;
  std::string help;
  std::vector<DescribedFlag> arguments;  ///< without dashes, in their order
  std::vector<DescribedFlag> flags;      ///< by group; groups have one order in all commands
};

DescribedCommand described_command(const CLI::App& app);

/// The subcommands of `root`, in the order of the help.
std::vector<DescribedCommand> described_commands(const CLI::App& root);

}  // namespace sim
