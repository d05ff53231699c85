#include "estimator/base/range.h"

#include <fmt/format.h>

#include "estimator/base/errors.h"
#include "estimator/base/units.h"

namespace estimator {
namespace {

std::string end_text(double value) {
  return is_whole(value) ? with_commas(static_cast<int64_t>(value)) : fmt::format("{:g}", value);
}

void require(bool holds, const std::string& shown, Range range, const std::string& source) {
  if (holds) return;
  throw UserError({.what = kOutOfRange,
                   .where = fmt::format("{} = {}", source, shown),
                   .help = range_text(range)});
}

}  // namespace

std::string range_text(Range range) {
  const std::string example =
      range.example != nullptr ? fmt::format(": {}", range.example) : std::string();
  if (std::isinf(range.most)) {
    return fmt::format("use a number of at least {}{}", end_text(range.least), example);
  }
  return fmt::format(
      "use a number from {} to {}{}", end_text(range.least), end_text(range.most), example);
}

void require_in_range(int64_t value, Range range, const std::string& source) {
  require(range.holds(static_cast<double>(value)), std::to_string(value), range, source);
}

void require_in_range(double value, Range range, const std::string& source) {
  require(range.holds(value), fmt::format("{}", value), range, source);
}

}  // namespace estimator
