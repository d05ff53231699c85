// What the short help of each subcommand shows: the options that people need first, and examples.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sim {

struct CommandGuide {
  std::string command;
  std::vector<std::string> first_flags;  ///< "--tp", in the order of the help; empty: all
  std::vector<std::string> examples;     ///< without "onerank" where they begin with it
};

const std::vector<CommandGuide>& command_guides();

/// Throws std::logic_error for a subcommand without a guide.
const CommandGuide& guide_of(std::string_view command);

}  // namespace sim
