#include "sim/cli/report/timeline_columns.h"

#include <algorithm>

namespace sim {

TimelineColumns::TimelineColumns(int count, double seconds, char beside, char little)
    : seconds_of_column_(seconds / count),
      beside_(beside),
      little_(little),
      filled_(static_cast<std::size_t>(count)) {}

void TimelineColumns::add(char letter, double begin_seconds, double end_seconds) {
  const double begin = std::max(0.0, begin_seconds / seconds_of_column_);
  const double end = end_seconds / seconds_of_column_;
  const auto last = static_cast<std::size_t>(std::max(0.0, end));
  for (auto c = static_cast<std::size_t>(begin); c <= last && c < filled_.size(); ++c) {
    const auto column = static_cast<double>(c);
    const double part = std::min(end, column + 1) - std::max(begin, column);
    if (part > 0) filled_[c][letter] += part;
  }
}

std::string TimelineColumns::text() const {
  std::string line;
  for (const std::map<char, double>& column : filled_) line += most_of(column);
  return line;
}

char TimelineColumns::most_of(const std::map<char, double>& column) const {
  double busy = 0, most = 0;
  char letter = kIdleColumn;
  for (const auto& [which, part] : column) {
    if (which == beside_) continue;
    busy += part;
    if (part > most) {
      most = part;
      letter = which;
    }
  }
  if (2 * busy >= 1) return letter;
  const auto data = column.find(beside_);
  if (data != column.end() && 2 * data->second >= 1 - busy) return beside_;
  constexpr double kNothing = 0.01;
  return busy > kNothing ? little_ : kIdleColumn;
}

}  // namespace sim
