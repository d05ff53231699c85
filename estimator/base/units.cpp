#include "estimator/base/units.h"

#include <fmt/format.h>

#include <cmath>

namespace estimator {

std::string with_commas(int64_t value) {
  const auto magnitude = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  return fmt::format("{}{}", value < 0 ? "-" : "", fmt::group_digits(magnitude));
}

std::string whole_with_commas(double value) {
  constexpr double kMostDigits = 1e15;
  if (std::abs(value) < kMostDigits) return with_commas(static_cast<int64_t>(value));
  return fmt::format("{:.3g}", value);
}

std::string amount_with_commas(double value) {
  return std::abs(value) < 10 ? fmt::format("{:.2g}", value) : whole_with_commas(value);
}

std::string format_gib(int64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / static_cast<double>(kGiB));
}

std::string format_mib(int64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / static_cast<double>(kMiB));
}

std::string format_duration(double seconds) {
  const double magnitude = std::abs(seconds);
  if (magnitude < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (magnitude < 1.0) return fmt::format("{:.2f} ms", seconds * 1e3);
  if (magnitude < 2 * kHour) return fmt::format("{:.2f} s", seconds);
  if (magnitude < 48 * kHour) return fmt::format("{:.1f} h", seconds / kHour);
  return fmt::format("{:.1f} days", seconds / (24 * kHour));
}

}  // namespace estimator
