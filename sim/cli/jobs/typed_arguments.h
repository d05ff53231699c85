// What a user typed on a command line, to be typed again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/cli/input/cli_fwd.h"

namespace sim {

/// "--name", or "" for an argument without a name.
std::string long_name(const CLI::Option& option);

/// The arguments that `app` has parsed, in their order and with the options' long names, without
/// the options and values that are left out.
std::vector<std::string> typed_arguments(
    const CLI::App& app,
    const std::function<bool(const CLI::Option& option, const std::string& value)>& is_left_out);

}  // namespace sim
