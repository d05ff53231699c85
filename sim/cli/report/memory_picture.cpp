#include "sim/cli/report/memory_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <utility>

#include "estimator/base/files.h"
#include "estimator/base/units.h"

namespace sim {
namespace {

constexpr std::array<const char*, 9> kEighths = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::size_t kPhaseColumn = 1;  // of the CSV (sim/tracking/memory_timeline.cpp)

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

/// The numbers are the last columns, because a module's name may have commas.
MemoryPoint point_of(const std::vector<std::string>& cells) {
  MemoryPoint point{.phase = cells.at(kPhaseColumn)};
  std::size_t column = cells.size();
  const auto number_before = [&] { return std::stoll(cells.at(--column)); };
  for (auto bytes = point.categories.bytes.rbegin(); bytes != point.categories.bytes.rend();) {
    *bytes++ = number_before();
  }
  point.reserved_bytes = number_before();
  point.allocated_bytes = number_before();
  return point;
}

const char* bar(int64_t bytes, int64_t largest) {
  const int64_t eighths = largest > 0 ? estimator::divide_up(8 * bytes, largest) : 0;
  return kEighths[static_cast<std::size_t>(std::clamp<int64_t>(eighths, 0, 8))];
}

/// a to z, then A to Z, then the same again.
std::string letter_of(std::size_t phase) {
  static constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return std::string(1, kLetters[phase % kLetters.size()]);
}

/// Lines of at most `columns`, with two blanks before each entry.
std::string wrapped(const std::vector<std::string>& entries, int columns) {
  std::string text, line;
  for (const std::string& entry : entries) {
    if (!line.empty() && line.size() + 2 + entry.size() > static_cast<std::size_t>(columns)) {
      text += std::exchange(line, "") + "\n";
    }
    line += "  " + entry;
  }
  return text + line + "\n";
}

}  // namespace

std::vector<MemoryPoint> read_memory_timeline(const std::string& path) {
  std::istringstream stream(estimator::read_file(path));
  std::string line;
  std::getline(stream, line);  // names of the columns
  std::vector<MemoryPoint> points;
  while (std::getline(stream, line)) {
    const std::vector<std::string> cells = cells_of(line);
    points.push_back(point_of(cells));
  }
  return points;
}

std::string memory_picture(const std::vector<MemoryPoint>& points, int columns) {
  constexpr int kIndent = 2, kLeastColumns = 20;
  if (points.empty()) return "";
  const auto less = [](const MemoryPoint& a, const MemoryPoint& b) {
    return a.allocated_bytes < b.allocated_bytes;
  };
  const int64_t largest = std::max_element(points.begin(), points.end(), less)->allocated_bytes;
  const auto width = std::min<std::size_t>(
      static_cast<std::size_t>(std::max(columns - kIndent, kLeastColumns)), points.size());
  std::string bars, marks, phase;
  std::vector<std::string> legend;
  for (std::size_t column = 0; column < width; ++column) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(column * points.size() / width);
    const auto end =
        points.begin() + static_cast<std::ptrdiff_t>((column + 1) * points.size() / width);
    bars += bar(std::max_element(begin, end, less)->allocated_bytes, largest);
    marks += ' ';
    for (auto point = begin; point != end; ++point) {
      if (point->phase == phase) continue;
      phase = point->phase;
      const std::string letter = letter_of(legend.size());
      legend.push_back(fmt::format("{} {}", letter, phase));
      marks.back() = marks.back() == ' ' ? letter.front() : '*';
    }
  }
  return fmt::format(
      "allocated memory from allocation to allocation, {} at the top\n  {}\n  {}\n{}",
      estimator::format_gib(largest),
      bars,
      marks,
      wrapped(legend, columns));
}

}  // namespace sim
