#include "sim/cli/report/program_timeline_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "estimator/base/units.h"
#include "sim/cli/report/timeline_columns.h"

namespace sim {
namespace {

using estimator::Direction;
using estimator::PlayedRank;
using estimator::PlayedWork;
using estimator::ReplayRank;
using estimator::WorkClass;

char letter_of_work(const ReplayRank& rank, const PlayedWork& work) {
  const WorkClass work_class = estimator::price_of(rank, work).work_class;
  if (work_class == WorkClass::kCommunication) return '~';
  if (work_class == WorkClass::kCopies) return 'c';
  switch (estimator::direction_of(rank, work)) {
    case Direction::kForward:
      return 'F';
    case Direction::kRecompute:
      return 'R';
    case Direction::kBackward:
      return 'B';
    case Direction::kReduceGradients:
      return 'G';
    case Direction::kOptimizerStep:
      return 'O';
  }
  return '?';
}

struct StreamLine {
  TimelineColumns columns;
  double busy_seconds = 0;
};

std::map<int64_t, StreamLine> lines_of(const ReplayRank& rank,
                                       const PlayedRank& played,
                                       int width,
                                       double step_seconds) {
  std::map<int64_t, StreamLine> lines;
  for (const PlayedWork& work : played.works) {
    StreamLine& line = lines
                           .try_emplace(estimator::stream_of(rank, work),
                                        StreamLine{TimelineColumns(width, step_seconds, '\0', ':')})
                           .first->second;
    const double begin = std::max(work.start, played.iteration_start) - played.iteration_start;
    const double end = work.end - played.iteration_start;
    if (end <= begin) continue;
    line.columns.add(letter_of_work(rank, work), begin, end);
    line.busy_seconds += end - begin;
  }
  return lines;
}

}  // namespace

std::string program_timeline_text(const estimator::ProgramReplay& replayed, int columns) {
  constexpr int kLabelColumns = 36;  // "  rank 16383 stream 17 |...|  97 %"
  constexpr int kLeastColumns = 20;
  const double seconds = replayed.iteration_seconds();
  if (!(seconds > 0)) return "\nThe step takes no time: nothing was priced\n";
  const int width = std::max(kLeastColumns, columns - kLabelColumns);
  std::string text =
      fmt::format("\nThe step, {} for each column\n", estimator::format_duration(seconds / width));
  for (std::size_t i = 0; i < replayed.ranks.size(); ++i) {
    const ReplayRank& rank = replayed.ranks[i];
    for (const auto& [stream, line] : lines_of(rank, replayed.played[i], width, seconds)) {
      text += fmt::format("  rank {:>5} stream {:>3} |{}| {:>3.0f} %\n",
                          rank.profile->rank,
                          stream,
                          line.columns.text(),
                          100 * line.busy_seconds / seconds);
    }
  }
  return text +
         "  F forward, R recompute, B backward, G reduction of gradients, O optimizer, c copies "
         "between host and GPU,\n  ~ communication, : less than half of the column, . nothing\n";
}

}  // namespace sim
