// Text in aligned columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sim {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kRight;
};

/// Columns as wide as their widest cell, two spaces apart; no trailing spaces.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Throws std::logic_error when the number of cells is not the number of columns.
  void add_row(std::vector<std::string> cells);

  /// The titles, then the rows, each line behind `indent` spaces and ended by a newline.
  std::string text(int indent = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Gibibytes for a column whose title has the unit: "79.19".
std::string gib(int64_t bytes);

}  // namespace sim
