// Patterns of names, as a shell has them.
#pragma once

#include <string_view>

namespace sim {

/// Whether the pattern, with *, ? and sets such as [a-z] and [!0-9], stands for the whole text.
bool matches_glob(std::string_view text, std::string_view pattern);

}  // namespace sim
