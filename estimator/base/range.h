// The range that a number must be in.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace estimator {

/// Both ends belong to the range. For a list it is the range of each number.
struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  const char* example = nullptr;  ///< shows what a number means: "0.015 for 1.5 %"

  constexpr bool holds(double value) const { return value >= least && value <= most; }
};

inline constexpr const char* kOutOfRange = "a number is out of range";

/// "use a number from 1 to 1,024", with the range's example.
std::string range_text(Range range);

/// Throws UserError that shows "SOURCE = VALUE" if the value is out of the range.
void require_in_range(int64_t value, Range range, const std::string& source);
void require_in_range(double value, Range range, const std::string& source);

/// The largest whole number that a document may hold. It is below 2^53, so that a double holds it
/// exactly.
inline constexpr double kLargestWhole = 9.0e15;

/// Whether `value` is a whole number that a document may hold.
inline bool is_whole(double value) {
  return std::abs(value) <= kLargestWhole && std::floor(value) == value;
}

/// Counts, and sizes that are counted in elements.
inline constexpr Range kCount = {0, kLargestWhole};

/// Bytes, up to 1 PiB: more than any device or machine has, and thousands of such numbers still add
/// up in an int64_t.
inline constexpr Range kBytes = {0, static_cast<double>(int64_t{1} << 50)};

/// The most ranks of a world that `onerank exec` can simulate.
inline constexpr int64_t kMostRanks = int64_t{1} << 24;
inline constexpr int64_t kMostGpusOfNode = 64;  ///< of the virtual machine
/// Numbers of ranks along an axis of a plan, of machines, of layers.
inline constexpr Range kDegree = {1, 1e6};
inline constexpr Range kGroupSize = {1, kMostRanks};
inline constexpr Range kGpusOfNode = {1, kMostGpusOfNode};
inline constexpr Range kMemberOrNone = {-1, kMostRanks};  ///< -1: none

/// Up to 30 years.
inline constexpr Range kSeconds = {0, 1e9};

/// FLOPs or bytes of one operator. For scale: the product of two matrices of a million rows and
/// columns takes 2e18 FLOPs.
inline constexpr Range kWork = {0, 1e21};

}  // namespace estimator
