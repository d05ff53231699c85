#include "sim/cli/report/timeline_text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "estimator/base/units.h"

namespace sim {
namespace {

using estimator::Activity;
using estimator::StageTimeline;
using estimator::TimelineEvent;
using estimator::Track;

constexpr char kIdle = '.';
constexpr char kData = '~';

char letter_of(const TimelineEvent& event) {
  const auto digit = static_cast<char>(event.micro_batch % 10);
  switch (event.activity) {
    case Activity::kForward:
      return static_cast<char>('0' + digit);
    case Activity::kBackward:
    case Activity::kBackwardInput:
      return static_cast<char>('a' + digit);
    case Activity::kBackwardWeight:
      return '+';
    case Activity::kOptimizer:
      return 'O';
    default:
      return kData;
  }
}

/// How much of each column goes to what, and what of it is most.
class Columns {
 public:
  Columns(int count, double seconds) : seconds_of_column_(seconds / count), filled_(count) {}

  void add(const TimelineEvent& event) {
    const double begin = event.begin_seconds / seconds_of_column_;
    const double end = event.end_seconds / seconds_of_column_;
    const auto last = static_cast<std::size_t>(std::max(0.0, end));
    for (auto c = static_cast<std::size_t>(begin); c <= last && c < filled_.size(); ++c) {
      const auto column = static_cast<double>(c);
      const double part = std::min(end, column + 1) - std::max(begin, column);
      if (part > 0) filled_[c][letter_of(event)] += part;
    }
  }

  std::string text() const {
    std::string line;
    for (const std::map<char, double>& column : filled_) line += most_of(column);
    return line;
  }

 private:
  /// Communication runs beside the rest and shows only where there is no rest.
  static char most_of(const std::map<char, double>& column) {
    double busy = 0, most = 0;
    char letter = kIdle;
    for (const auto& [which, part] : column) {
      if (which == kData) continue;
      busy += part;
      if (part > most) {
        most = part;
        letter = which;
      }
    }
    if (2 * busy >= 1) return letter;
    const auto data = column.find(kData);
    return data != column.end() && 2 * data->second >= 1 - busy ? kData : kIdle;
  }

  double seconds_of_column_;
  std::vector<std::map<char, double>> filled_;
};

double busy_seconds(const StageTimeline& stage) {
  double seconds = 0;
  for (const TimelineEvent& event : stage.events) {
    if (event.track == Track::kCompute) seconds += event.end_seconds - event.begin_seconds;
  }
  return seconds;
}

}  // namespace

std::string timeline_text(const estimator::StepTimeline& timeline, int columns) {
  constexpr int kLabelColumns = 20;  // "  stage 15 |...|  97 %"
  constexpr int kLeastColumns = 20;
  if (!(timeline.iteration_seconds > 0)) return "\nThe step takes no time: nothing was priced\n";
  const int width = std::max(kLeastColumns, columns - kLabelColumns - 2);
  std::string text = fmt::format("\nThe step, {} for each column\n",
                                 estimator::format_duration(timeline.iteration_seconds / width));
  for (const StageTimeline& stage : timeline.stages) {
    Columns line(width, timeline.iteration_seconds);
    for (const TimelineEvent& event : stage.events) {
      if (event.track != Track::kPipeline) line.add(event);
    }
    text += fmt::format("  stage {:>3} |{}| {:>3.0f} %\n",
                        stage.stage,
                        line.text(),
                        100 * busy_seconds(stage) / timeline.iteration_seconds);
  }
  return text +
         "  0-9 forward and a-j backward of micro-batch ..0 to ..9, O optimizer, ~ data "
         "communication, . waiting\n";
}

int output_columns() {
  constexpr int kUsual = 100;
  winsize size{};
  const bool is_terminal = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_terminal ? size.ws_col : kUsual;
}

}  // namespace sim
