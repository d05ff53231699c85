#include "sim/cli/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "estimator/base/units.h"

namespace sim {

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) {
    throw std::logic_error("a table's row has not one cell for each column");
  }
  rows_.push_back(std::move(cells));
}

std::string Table::text(int indent) const {
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(columns_[i].title);
    widths.push_back(titles.back().size());
    for (const auto& row : rows_) widths.back() = std::max(widths.back(), row[i].size());
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text(static_cast<std::size_t>(indent), ' ');
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) text += "  ";
      text += columns_[i].align == Align::kLeft ? fmt::format("{:<{}}", cells[i], widths[i])
                                                : fmt::format("{:>{}}", cells[i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = line(titles);
  for (const auto& row : rows_) text += line(row);
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

std::string markdown_line(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + replaced(cell, "|", "\\|") + " |";
  return line + "\n";
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

std::vector<std::string> titles_of(const std::vector<Column>& columns) {
  std::vector<std::string> titles;
  titles.reserve(columns.size());
  for (const Column& column : columns) titles.push_back(column.title);
  return titles;
}

}  // namespace

std::string Table::markdown() const {
  std::string text = markdown_line(titles_of(columns_)) + "|";
  for (const Column& column : columns_) text += column.align == Align::kLeft ? " --- |" : " ---: |";
  text += "\n";
  for (const auto& row : rows_) text += markdown_line(row);
  return text;
}

std::string Table::csv() const {
  std::string text = csv_line(titles_of(columns_));
  for (const auto& row : rows_) text += csv_line(row);
  return text;
}

std::string TitledTable::text() const {
  std::string text = title + "\n" + table.text(2);
  for (const std::string& note : notes) text += "  " + note + "\n";
  return text;
}

std::string gib(int64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / static_cast<double>(estimator::kGiB));
}

}  // namespace sim
