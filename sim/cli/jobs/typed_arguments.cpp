#include "sim/cli/jobs/typed_arguments.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <set>

namespace sim {

std::string long_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? "" : "--" + option.get_lnames().front();
}

std::vector<std::string> typed_arguments(
    const CLI::App& app,
    const std::function<bool(const CLI::Option& option, const std::string& value)>& is_left_out) {
  std::set<const CLI::Option*> seen;
  std::vector<std::string> arguments;
  for (const CLI::Option* option : app.parse_order()) {
    if (!seen.insert(option).second) continue;
    const std::string name = long_name(*option);
    for (const std::string& value : option->results()) {
      if (is_left_out(*option, value)) continue;
      if (option->get_items_expected_max() == 0) {  // a switch
        arguments.push_back(value == "true" ? name : fmt::format("{}={}", name, value));
        continue;
      }
      if (!name.empty()) arguments.push_back(name);
      arguments.push_back(value);
    }
  }
  return arguments;
}

}  // namespace sim
