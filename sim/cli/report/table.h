// Tables: one of text columns, and one with its title. Reports, Markdown, CSV and pages show the
// same rows.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/cli/report/report_style.h"

namespace sim {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kRight;
  std::string source;     ///< where its numbers come from, for pages; "" if the rows say it
  std::string name = {};  ///< for programs, where `title` is ""
};

/// A table whose columns are as wide as their widest cell if there is room, with two spaces between
/// them and no trailing spaces.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Throws std::logic_error when the number of cells is not the number of columns.
  void add_row(std::vector<std::string> cells);

  /// The titles, then the rows. Each line begins with `indent` spaces and ends with a newline. A
  /// table that is wider than `columns` has its titles and its longest column of texts on several
  /// lines; if that is not enough, its columns stand in blocks below each other, and each block
  /// begins with the first column.
  std::string text(std::size_t indent = 0, std::size_t columns = kAnyColumns) const;
  /// The same as a table of GitHub's Markdown.
  std::string markdown() const;
  /// The same as comma-separated values (RFC 4180, but lines end with a newline alone), with
  /// numbers that have no commas themselves. Neither has the spaces around a cell's text.
  std::string csv() const;

  /// The table in the format of the style; text is indented and keeps to the style's columns.
  std::string in(const ReportStyle& style, std::size_t indent = 2) const;

  /// The same without its last column.
  Table without_last_column() const;

  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

struct TitledTable {
  std::string title;  ///< "" if the first column says it
  Table table;
  std::vector<std::string> notes;  ///< sentences below the table

  /// The title, the table and the notes. In text these are indented by two spaces, in Markdown the
  /// title is a heading, and in CSV titles and notes are lines that begin with "# ".
  std::string in(const ReportStyle& style = {}) const;
};

/// The tables below each other, with an empty line between them.
std::string tables_in(const std::vector<TitledTable>& tables, const ReportStyle& style = {});

/// The same tables where they follow other text: each after an empty line.
std::string following_tables(const std::vector<TitledTable>& tables, const ReportStyle& style);

/// GiB without the unit, for a column whose title has it: "79.19".
std::string gib(int64_t bytes);

}  // namespace sim
