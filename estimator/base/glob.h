// Patterns of names, as a shell has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace estimator {

/// Whether the pattern, with *, ? and sets such as [a-z] and [!0-9], stands for the whole text.
bool matches_glob(std::string_view text, std::string_view pattern);
/// The same of one of the patterns.
bool matches_any_glob(std::string_view text, const std::vector<std::string>& patterns);

}  // namespace estimator
