// Allocated memory over a run, as a line of blocks that are one to eight eighths high.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sim {

struct MemoryPoint {
  std::string phase;
  int64_t allocated_bytes = 0;
};

/// The points of a file that --memory-timeline wrote. Throws UserError when it cannot be read.
std::vector<MemoryPoint> read_memory_timeline(const std::string& path);

/// `columns` wide: in each column the most that its share of the points had; below it a letter
/// where a phase begins (a star where several do), and what the letters mean. "" for no points.
std::string memory_picture(const std::vector<MemoryPoint>& points, int columns);

}  // namespace sim
