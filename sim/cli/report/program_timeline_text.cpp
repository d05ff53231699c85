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

}  // namespace

std::vector<StreamTrack> stream_tracks(const estimator::ProgramReplay& replayed) {
  std::vector<StreamTrack> tracks;
  for (std::size_t i = 0; i < replayed.ranks.size(); ++i) {
    const ReplayRank& rank = replayed.ranks[i];
    const PlayedRank& played = replayed.played[i];
    std::map<int64_t, StreamTrack> streams;
    for (const PlayedWork& work : played.works) {
      const int64_t stream = estimator::stream_of(rank, work);
      StreamTrack& track =
          streams.try_emplace(stream, StreamTrack{.rank = rank.profile->rank, .stream = stream})
              .first->second;
      const double begin = std::max(work.start, played.iteration_start) - played.iteration_start;
      const double end = work.end - played.iteration_start;
      if (end > begin) track.works.push_back({letter_of_work(rank, work), begin, end});
    }
    for (auto& [stream, track] : streams) tracks.push_back(std::move(track));
  }
  return tracks;
}

std::string program_timeline_text(const estimator::ProgramReplay& replayed, int columns) {
  constexpr int kLabelColumns = 36;  // "  rank 16383 stream 17 |...|  97 %"
  constexpr int kLeastColumns = 20;
  const double seconds = replayed.iteration_seconds();
  if (!(seconds > 0)) return "\nThe step takes no time: nothing was priced\n";
  const int width = std::max(kLeastColumns, columns - kLabelColumns);
  std::string text =
      fmt::format("\nThe step, {} for each column\n", estimator::format_duration(seconds / width));
  for (const StreamTrack& track : stream_tracks(replayed)) {
    TimelineColumns line(width, seconds, '\0', ':');
    double busy_seconds = 0;
    for (const StreamWork& work : track.works) {
      line.add(work.letter, work.begin_seconds, work.end_seconds);
      busy_seconds += work.end_seconds - work.begin_seconds;
    }
    text += fmt::format("  rank {:>5} stream {:>3} |{}| {:>3.0f} %\n",
                        track.rank,
                        track.stream,
                        line.text(),
                        100 * busy_seconds / seconds);
  }
  return text +
         "  F forward, R recompute, B backward, G reduction of gradients, O optimizer, c copies "
         "between host and GPU,\n  ~ communication, : less than half of the column, . nothing\n";
}

}  // namespace sim
