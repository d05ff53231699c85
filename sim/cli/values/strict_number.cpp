#include "sim/cli/values/strict_number.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "estimator/base/errors.h"

namespace sim {
namespace {

using estimator::UserError;

/// The number that the whole text is, if it is one.
template <class Number>
std::optional<Number> read_number(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

int64_t parse_whole_number(const std::string& text, const std::string& source) {
  if (const auto whole = read_number<int64_t>(text)) return *whole;
  constexpr double kLargest = 9.0e15;  // below 2^53: exact in a double
  const auto real = read_number<double>(text);
  if (real && std::abs(*real) <= kLargest && std::floor(*real) == *real) {
    return static_cast<int64_t>(*real);
  }
  throw UserError({.what = "a whole number is needed here",
                   .where = fmt::format("{} = \"{}\"", source, text),
                   .help = "write a number such as 8"});
}

int64_t parse_positive_number(const std::string& text, const std::string& source) {
  const int64_t number = parse_whole_number(text, source);
  if (number >= 1) return number;
  throw UserError({.what = "a number is out of range",
                   .where = fmt::format("{} = {}", source, number),
                   .help = "use 1 or more"});
}

double parse_real_number(const std::string& text, const std::string& source) {
  const auto real = read_number<double>(text);
  if (real && std::isfinite(*real)) return *real;
  throw UserError({.what = "a finite number is needed here",
                   .where = fmt::format("{} = \"{}\"", source, text),
                   .help = "write a number such as 0.1"});
}

}  // namespace sim
