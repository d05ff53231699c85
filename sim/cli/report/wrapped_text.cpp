#include "sim/cli/report/wrapped_text.h"

#include <algorithm>
#include <sstream>

#include "estimator/base/text.h"

namespace sim {
namespace {

/// Narrower lines than this would hold a word or two.
constexpr std::size_t kFewestColumns = 24;

/// "  - text" and "  1. text" in lines below "text"; other lines go on two spaces further than they
/// begin.
std::string wrapped_line(const std::string& line, std::size_t columns) {
  std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t mark = line.find_first_not_of("-0123456789.", begin);
  const bool is_item = mark > begin && mark < line.size() && line[mark] == ' ';
  if (is_item) begin = mark + 1;
  if (is_item) return hanging_text(line.substr(0, begin), line.substr(begin), columns);
  const std::string indent(begin + 2, ' ');
  return hanging_text(indent, line.substr(begin), columns).substr(2);
}

}  // namespace

std::vector<std::string> wrapped_lines(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines(1);
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (line.size() + 1 + word.size() <= columns) {
      line += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string hanging_text(std::string_view first, std::string_view text, std::size_t columns) {
  const std::size_t left = columns > first.size() ? columns - first.size() : 0;
  std::string result;
  for (const std::string& line : wrapped_lines(text, std::max(left, kFewestColumns))) {
    result += result.empty() ? std::string(first) : std::string(first.size(), ' ');
    result += line + "\n";
  }
  return result;
}

std::string with_wrapped_lines(std::string_view text, std::size_t columns) {
  std::string result;
  for (const std::string& line : estimator::split(std::string(text), '\n')) {
    result += line.size() <= columns ? line + "\n" : wrapped_line(line, columns);
  }
  result.pop_back();  // the newline after the last piece, which the text does not have
  return result;
}

}  // namespace sim
