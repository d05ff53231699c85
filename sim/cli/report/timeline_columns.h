// A line of characters in which each stands for what a part of a step is spent on.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sim {

inline constexpr char kIdleColumn = '.';

/// How much of each column goes to what, and what of it is most.
class TimelineColumns {
 public:
  /// `count` columns for `seconds`. What is marked by `beside` runs beside the rest, and shows only
  /// where there is no rest. Where less than half of a column is filled stands `little`.
  TimelineColumns(int count, double seconds, char beside, char little = kIdleColumn);

  /// Seconds are from the start of the first column.
  void add(char letter, double begin, double end);

  std::string text() const;

 private:
  char most_of(const std::map<char, double>& column) const;

  double seconds_of_column_;
  char beside_;
  char little_;
  std::vector<std::map<char, double>> filled_;
};

}  // namespace sim
