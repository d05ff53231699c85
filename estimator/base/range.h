// The range that a number must be in.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace estimator {

/// Both ends belong to it. Of a list it is the range of each number.
struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  const char* example = nullptr;  ///< what a number stands for: "0.015 for 1.5 %"

  constexpr bool holds(double value) const { return value >= least && value <= most; }
};

/// The largest whole number that documents hold: below 2^53, so that each is exact as a double.
inline constexpr double kLargestWhole = 9.0e15;

/// Whether it is a whole number that documents hold.
inline bool is_whole(double value) {
  return std::abs(value) <= kLargestWhole && std::floor(value) == value;
}

/// How often something is, and sizes that are counted.
inline constexpr Range kCount = {0, kLargestWhole};

/// 1 PiB, more than a device or a machine has; thousands of them add up within an int64_t.
inline constexpr Range kBytes = {0, static_cast<double>(int64_t{1} << 50)};

/// Ranks of the largest world that `onerank exec` plays.
inline constexpr double kMostRanks = int64_t{1} << 24;
inline constexpr Range kGroupSize = {1, kMostRanks};
inline constexpr Range kGpusOfNode = {1, 64};             ///< of the virtual machine
inline constexpr Range kMemberOrNone = {-1, kMostRanks};  ///< -1: none

/// Up to 30 years.
inline constexpr Range kSeconds = {0, 1e9};

/// What one operator does: a product of matrices of a million rows and columns has 2e18 FLOPs.
inline constexpr Range kWork = {0, 1e21};

}  // namespace estimator
