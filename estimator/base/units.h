// Units, and their conversion to text. Inside the program memory is in int64_t bytes, time in
// double seconds, and rates in bytes or FLOP per second. GiB = 2^30 for memory, GB/s = 10^9 for
// links.
#pragma once

#include <cstdint>
#include <string>

namespace estimator {

inline constexpr int64_t kKiB = int64_t{1} << 10;
inline constexpr int64_t kMiB = int64_t{1} << 20;
inline constexpr int64_t kGiB = int64_t{1} << 30;

inline constexpr double kMicrosecond = 1e-6;
inline constexpr double kHour = 3600.0;

constexpr int64_t divide_up(int64_t value, int64_t by) { return (value + by - 1) / by; }
constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return divide_up(value, multiple) * multiple;
}

/// "1,048,576"
std::string with_commas(int64_t value);
/// The whole part of `value`: "1,048,576", or "1.23e+18" if it has more digits than a double holds.
std::string whole_with_commas(double value);
/// The same, but with two digits of a value below 10: "0.057".
std::string amount_with_commas(double value);
/// "79.19 GiB"
std::string format_gib(int64_t bytes);
/// "812.50": MiB without the unit, for table columns.
std::string format_mib(int64_t bytes);
/// "1.2 us", "3.45 ms", "6.78 s", "4.5 h", "54.2 days"
std::string format_duration(double seconds);

}  // namespace estimator
