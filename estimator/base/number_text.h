// parse_number(): the number that a text from outside is.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace estimator {

/// Empty unless the whole text is one number of the type, as std::from_chars reads it: no blanks,
/// no '+' in front.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace estimator
