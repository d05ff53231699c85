// Draws the allocated memory over a run as a line of block characters, one to eight eighths high.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/profile/memory_category.h"

namespace sim {

struct MemoryPoint {
  std::string phase;
  int64_t allocated_bytes = 0;
  int64_t reserved_bytes = 0;
  estimator::CategoryBytes categories;
};

/// Reads the points of a file that --memory-timeline wrote. Throws UserError when it cannot be
/// read.
std::vector<MemoryPoint> read_memory_timeline(const std::string& path);

/// A picture that is `columns` wide. Each column shows the largest of its share of the points.
/// Below it a letter stands where a phase begins (a star if several begin there), followed by what
/// the letters mean. "" if there are no points.
std::string memory_picture(const std::vector<MemoryPoint>& points, int columns);

}  // namespace sim
