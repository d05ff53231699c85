// The sums of a shell, as in $(( ... )), (( ... )) and let.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sim {

/// What a sum reads and writes. A value that is not known is nothing.
struct SumVariables {
  std::function<std::optional<int64_t>(const std::string& name)> value;
  /// Empty: a sum that assigns has no value.
  std::function<void(const std::string& name, std::optional<int64_t> value)> assign;
};

/// The value of a sum whose variables with `$` are replaced already. It is nothing where it depends
/// on what is not known, where a shell would refuse it, and where it overflows.
std::optional<int64_t> shell_sum(std::string_view text, const SumVariables& variables);

/// A number as sums read it: 8, 010 (eight), 0x8.
std::optional<int64_t> shell_number(std::string_view text);

}  // namespace sim
