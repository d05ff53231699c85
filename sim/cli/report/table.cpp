#include "sim/cli/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <regex>
#include <stdexcept>
#include <string_view>

#include "estimator/base/units.h"
#include "sim/cli/report/wrapped_text.h"

namespace sim {

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) {
    throw std::logic_error("a table's row has not one cell for each column");
  }
  rows_.push_back(std::move(cells));
}

namespace {

constexpr std::size_t kGap = 2;
/// A column of texts is not made narrower than this.
constexpr std::size_t kFewestTextColumns = 24;

/// Columns that stand beside each other, and the widths of all columns.
struct TableBlock {
  std::vector<std::size_t> columns;
  std::vector<std::size_t> widths;

  std::size_t width() const {
    std::size_t width = kGap * (columns.size() - 1);
    for (const std::size_t column : columns) width += widths[column];
    return width;
  }
};

std::size_t longest_of(const std::vector<std::string>& texts) {
  std::size_t longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  return longest;
}

/// The block with its widest column of texts so narrow that it fits, if that is enough.
TableBlock squeezed(TableBlock block, const std::vector<Column>& columns, std::size_t room) {
  std::size_t* widest = nullptr;
  for (const std::size_t i : block.columns) {
    const bool is_text = columns[i].align == Align::kLeft;
    if (is_text && (widest == nullptr || block.widths[i] > *widest)) widest = &block.widths[i];
  }
  const std::size_t width = block.width();
  if (widest == nullptr || width <= room || *widest <= kFewestTextColumns) return block;
  *widest -= std::min(width - room, *widest - kFewestTextColumns);
  return block;
}

class TableLayout {
 public:
  TableLayout(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows)
      : columns_(columns), rows_(rows) {}

  std::vector<TableBlock> blocks(std::size_t room) const {
    std::vector<std::size_t> all(columns_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const TableBlock with_titles_in_a_line{all, widths(false)};
    if (with_titles_in_a_line.width() <= room) return {with_titles_in_a_line};
    const auto block_of = [&](std::vector<std::size_t> columns) {
      return squeezed({std::move(columns), widths(true)}, columns_, room);
    };
    std::vector<TableBlock> blocks = {block_of({0})};
    for (std::size_t i = 1; i < columns_.size(); ++i) {
      std::vector<std::size_t> longer = blocks.back().columns;
      longer.push_back(i);
      TableBlock block = block_of(longer);
      const bool fits = longer.size() <= 2 || block.width() <= room;
      fits ? blocks.back() = std::move(block) : blocks.emplace_back(block_of({0, i}));
    }
    return blocks;
  }

 private:
  /// Of all columns; titles on one line, or on one for each word.
  std::vector<std::size_t> widths(bool has_wrapped_titles) const {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& title = columns_[i].title;
      widths.push_back(has_wrapped_titles ? longest_of(wrapped_lines(title, 1)) : title.size());
      for (const auto& row : rows_) widths.back() = std::max(widths.back(), row[i].size());
    }
    return widths;
  }

  const std::vector<Column>& columns_;
  const std::vector<std::vector<std::string>>& rows_;
};

/// As it is if it has room, with its spaces.
std::vector<std::string> wrapped_cell(const std::string& cell, std::size_t width) {
  return cell.size() <= width ? std::vector<std::string>{cell} : wrapped_lines(cell, width);
}

/// A row in as many lines as its highest cell has; the lines of titles stand at the bottom.
std::string row_text(const std::vector<std::string>& cells,
                     const std::vector<Column>& columns,
                     const TableBlock& block,
                     std::size_t indent,
                     bool is_title) {
  std::vector<std::vector<std::string>> lines;
  std::size_t height = 0;
  for (const std::size_t column : block.columns) {
    lines.push_back(wrapped_cell(cells[column], block.widths[column]));
    height = std::max(height, lines.back().size());
  }
  std::string text;
  for (std::size_t line = 0; line < height; ++line) {
    std::string row(indent, ' ');
    for (std::size_t i = 0; i < block.columns.size(); ++i) {
      const std::size_t column = block.columns[i];
      const std::size_t empty_above = is_title ? height - lines[i].size() : 0;
      const bool has = line >= empty_above && line - empty_above < lines[i].size();
      const std::string cell = has ? lines[i][line - empty_above] : "";
      const std::size_t width = block.widths[column];
      if (i > 0) row.append(kGap, ' ');
      row += columns[column].align == Align::kLeft ? fmt::format("{:<{}}", cell, width)
                                                   : fmt::format("{:>{}}", cell, width);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::vector<std::string> titles_of(const std::vector<Column>& columns) {
  std::vector<std::string> titles;
  titles.reserve(columns.size());
  for (const Column& column : columns) titles.push_back(column.title);
  return titles;
}

}  // namespace

std::string Table::text(std::size_t indent, std::size_t columns) const {
  const std::size_t room = columns - std::min(columns, indent);
  std::string text;
  for (const TableBlock& block : TableLayout(columns_, rows_).blocks(room)) {
    text += row_text(titles_of(columns_), columns_, block, indent, true);
    for (const auto& row : rows_) text += row_text(row, columns_, block, indent, false);
  }
  return text;
}

namespace {

/// The text with `what` replaced by `with` everywhere.
std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

/// Without the spaces at both ends, which are for columns of text.
std::string trimmed(const std::string& cell) {
  const std::size_t begin = std::min(cell.find_first_not_of(' '), cell.size());
  return cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin);
}

std::string markdown_line(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + replaced(trimmed(cell), "|", "\\|") + " |";
  return line + "\n";
}

/// "4,015,263,744"
bool is_number_with_commas(const std::string& cell) {
  static const std::regex number("-?[0-9]{1,3}(,[0-9]{3})+(\\.[0-9]+)?");
  return std::regex_match(cell, number);
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) line += ",";
    const bool is_plain = cell.find_first_of(",\"\r\n") == std::string::npos;
    line += is_plain ? cell : "\"" + replaced(cell, "\"", "\"\"") + "\"";
  }
  return line + "\n";
}

}  // namespace

Table Table::without_last_column() const {
  Table table = *this;
  table.columns_.pop_back();
  for (auto& row : table.rows_) row.pop_back();
  return table;
}

std::string Table::markdown() const {
  std::string text = markdown_line(titles_of(columns_)) + "|";
  for (const Column& column : columns_) text += column.align == Align::kLeft ? " --- |" : " ---: |";
  text += "\n";
  for (const auto& row : rows_) text += markdown_line(row);
  return text;
}

std::string Table::csv() const {
  std::vector<std::string> names;
  for (const Column& column : columns_) {
    names.push_back(column.title.empty() ? column.name : column.title);
  }
  std::string text = csv_line(names);
  for (auto row : rows_) {
    for (std::string& cell : row) {
      cell = trimmed(cell);
      if (is_number_with_commas(cell)) std::erase(cell, ',');
    }
    text += csv_line(row);
  }
  return text;
}

std::string Table::in(const ReportStyle& style, std::size_t indent) const {
  if (style.format == TableFormat::kMarkdown) return markdown();
  if (style.format == TableFormat::kCsv) return csv();
  return text(indent, style.columns);
}

std::string TitledTable::in(const ReportStyle& style) const {
  const bool is_markdown = style.format == TableFormat::kMarkdown;
  const std::string mark = is_markdown ? "\n" : style.format == TableFormat::kCsv ? "# " : "  ";
  std::string text;
  if (!title.empty() && is_markdown) text = "### " + title + "\n\n";
  if (!title.empty() && !is_markdown) {
    text = (style.format == TableFormat::kCsv ? mark : "") + title + "\n";
  }
  text += table.in(style);
  for (const std::string& note : notes) text += mark + note + "\n";
  return text;
}

std::string tables_in(const std::vector<TitledTable>& tables, const ReportStyle& style) {
  std::string text;
  for (const TitledTable& table : tables) text += (text.empty() ? "" : "\n") + table.in(style);
  return text;
}

std::string following_tables(const std::vector<TitledTable>& tables, const ReportStyle& style) {
  std::string text;
  for (const TitledTable& table : tables) text += "\n" + table.in(style);
  return text;
}

std::string gib(int64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / static_cast<double>(estimator::kGiB));
}

}  // namespace sim
