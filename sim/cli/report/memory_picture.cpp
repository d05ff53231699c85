#include "sim/cli/report/memory_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "estimator/base/files.h"
#include "estimator/base/units.h"

namespace sim {
namespace {

constexpr std::array<const char*, 9> kEighths = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr int kPhaseColumn = 1, kAllocatedColumn = 5;  // of the CSV (sim/tracking/timeline.cpp)

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

const char* bar(int64_t bytes, int64_t largest) {
  const int64_t eighths = largest > 0 ? estimator::divide_up(8 * bytes, largest) : 0;
  return kEighths[static_cast<std::size_t>(std::clamp<int64_t>(eighths, 0, 8))];
}

}  // namespace

std::vector<MemoryPoint> read_memory_timeline(const std::string& path) {
  std::istringstream stream(estimator::read_file(path));
  std::string line;
  std::getline(stream, line);  // names of the columns
  std::vector<MemoryPoint> points;
  while (std::getline(stream, line)) {
    const std::vector<std::string> cells = cells_of(line);
    points.push_back({cells.at(kPhaseColumn), std::stoll(cells.at(kAllocatedColumn))});
  }
  return points;
}

std::string memory_picture(const std::vector<MemoryPoint>& points, std::size_t columns) {
  if (points.empty()) return "";
  const auto less = [](const MemoryPoint& a, const MemoryPoint& b) {
    return a.allocated_bytes < b.allocated_bytes;
  };
  const int64_t largest = std::max_element(points.begin(), points.end(), less)->allocated_bytes;
  std::string bars, marks, legend, phase;
  char letter = 'a';
  columns = std::min(columns, points.size());
  for (std::size_t column = 0; column < columns; ++column) {
    const auto begin =
        points.begin() + static_cast<std::ptrdiff_t>(column * points.size() / columns);
    const auto end =
        points.begin() + static_cast<std::ptrdiff_t>((column + 1) * points.size() / columns);
    bars += bar(std::max_element(begin, end, less)->allocated_bytes, largest);
    marks += ' ';
    for (auto point = begin; point != end; ++point) {
      if (point->phase == phase) continue;
      phase = point->phase;
      legend += fmt::format("  {} {}", letter, phase);
      marks.back() = letter++;
    }
  }
  return fmt::format(
      "allocated memory from allocation to allocation, {} at the top\n  {}\n  {}\n{}\n",
      estimator::format_gib(largest),
      bars,
      marks,
      legend);
}

}  // namespace sim
