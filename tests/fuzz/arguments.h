// Inputs that are command lines: one argument in each line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

/// The lines of the text, without a last empty one.
std::vector<std::string> lines_of(std::string_view text);

/// Runs `onerank ARGUMENT...` in this process and looks at what it writes to standard output.
/// Throws what it throws.
void use_command(const std::vector<std::string>& arguments);

}  // namespace fuzz
