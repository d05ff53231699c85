#include "sim/cli/values/strict_number.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "estimator/base/errors.h"
#include "estimator/base/number_text.h"
#include "estimator/base/range.h"
#include "estimator/base/text.h"

namespace sim {
namespace {

using estimator::UserError;

/// What the last letter multiplies with: 8k tokens are 8,192, but 4M and 15T are decimal.
double scale_of(const std::string& text) {
  constexpr std::pair<char, double> kScales[] = {
      {'k', 1024}, {'K', 1024}, {'M', 1e6}, {'B', 1e9}, {'G', 1e9}, {'T', 1e12}};
  for (const auto& [letter, scale] : kScales) {
    if (text.size() > 1 && text.back() == letter) return scale;
  }
  return 1;
}

/// "220_000" as "220000", as int() of Python reads it; a text with other _ as it is.
std::string without_underscores(const std::string& text) {
  const bool is_number = text.find_first_not_of("0123456789_") == text.npos &&
                         text.find("__") == text.npos && !text.starts_with('_') &&
                         !text.ends_with('_');
  std::string digits = text;
  if (is_number) std::erase(digits, '_');
  return digits;
}

/// "8,192" as "8192"; a text with commas elsewhere as it is.
std::string without_separators(const std::string& text) {
  const std::size_t first = text.find(',');
  if (first == text.npos || first == 0 || first > 3) return text;
  std::string digits = text.substr(0, first);
  for (std::size_t at = first; at < text.size(); at += 4) {
    const std::string group = text.substr(at + 1, 3);
    if (text[at] != ',' || group.size() != 3 || !estimator::is_digits(group)) return text;
    digits += group;
  }
  return digits;
}

}  // namespace

int64_t parse_whole_number(const std::string& text, const std::string& source) {
  if (const auto whole = estimator::parse_number<int64_t>(without_underscores(text))) return *whole;
  constexpr double kLargest = 9.0e15;  // below 2^53: exact in a double
  const double scale = scale_of(text);
  const std::string digits = scale == 1 ? text : text.substr(0, text.size() - 1);
  const auto real = estimator::parse_number<double>(without_separators(digits));
  const double number = real ? *real * scale : std::nan("");
  if (std::abs(number) <= kLargest && std::floor(number) == number) {
    return static_cast<int64_t>(number);
  }
  throw UserError({.what = "a whole number is needed here",
                   .where = fmt::format("{} = \"{}\"", source, text),
                   .help = "write a number such as 8"});
}

int64_t parse_positive_number(const std::string& text, const std::string& source) {
  const int64_t number = parse_whole_number(text, source);
  estimator::require_in_range(number, {.least = 1}, source);
  return number;
}

double parse_real_number(const std::string& text, const std::string& source) {
  const auto real = estimator::parse_number<double>(text);
  if (real && std::isfinite(*real)) return *real;
  throw UserError({.what = "a finite number is needed here",
                   .where = fmt::format("{} = \"{}\"", source, text),
                   .help = "write a number such as 0.1"});
}

}  // namespace sim
