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

constexpr char kInAnotherStep = ' ';

std::string columns_of(const StreamTrack& track, int count, double seconds) {
  TimelineColumns columns(count, seconds, '\0', ':');
  for (const StreamWork& work : track.works) {
    columns.add(work.letter, work.begin_seconds, work.end_seconds);
  }
  std::string text = columns.text();
  const double seconds_of_column = seconds / count;
  for (std::size_t c = 0; c < text.size(); ++c) {
    const bool is_before = static_cast<double>(c + 1) * seconds_of_column <= track.begin_seconds;
    const bool is_after = static_cast<double>(c) * seconds_of_column >= track.end_seconds;
    if (text[c] == kIdleColumn && (is_before || is_after)) text[c] = kInAnotherStep;
  }
  return text;
}

double busy_seconds(const StreamTrack& track) {
  double seconds = 0;
  for (const StreamWork& work : track.works) seconds += work.end_seconds - work.begin_seconds;
  return seconds;
}

}  // namespace

std::vector<StreamTrack> stream_tracks(const estimator::ProgramReplay& replayed) {
  std::vector<StreamTrack> tracks;
  const double origin = replayed.span().begin;
  for (std::size_t i = 0; i < replayed.ranks.size(); ++i) {
    const ReplayRank& rank = replayed.ranks[i];
    const PlayedRank& played = replayed.played[i];
    std::map<int64_t, StreamTrack> streams;
    for (const PlayedWork& work : played.works) {
      const int64_t stream = estimator::stream_of(rank, work);
      StreamTrack& track =
          streams
              .try_emplace(stream,
                           StreamTrack{.rank = rank.profile->rank,
                                       .stream = stream,
                                       .begin_seconds = played.iteration_start - origin,
                                       .end_seconds = played.iteration_end - origin})
              .first->second;
      const double begin = std::max(work.start, origin) - origin;
      const double end = work.end - origin;
      if (end > begin) track.works.push_back({letter_of_work(rank, work), begin, end});
    }
    for (auto& [stream, track] : streams) tracks.push_back(std::move(track));
  }
  return tracks;
}

std::string span_note(const estimator::ProgramReplay& replayed) {
  const std::string step = estimator::format_duration(replayed.iteration_seconds());
  const std::string all = estimator::format_duration(replayed.span().seconds());
  if (step == all) return "";
  return fmt::format(
      "A step takes {}; from the first rank's begin of it to the last rank's end it is {}",
      step,
      all);
}

std::string program_timeline_text(const estimator::ProgramReplay& replayed, int columns) {
  constexpr int kLabelColumns = 36;  // "  rank 16383 stream 17 |...|  97 %"
  constexpr int kLeastColumns = 20;
  const double seconds = replayed.iteration_seconds();
  if (!(seconds > 0)) return "\nThe step takes no time: nothing was priced\n";
  const double drawn = replayed.span().seconds();
  const int width = std::max(kLeastColumns, columns - kLabelColumns);
  std::string text =
      fmt::format("\nThe step, {} for each column\n", estimator::format_duration(drawn / width));
  bool has_blanks = false;
  for (const StreamTrack& track : stream_tracks(replayed)) {
    const std::string line = columns_of(track, width, drawn);
    has_blanks = has_blanks || line.find(kInAnotherStep) != std::string::npos;
    text += fmt::format("  rank {:>5} stream {:>3} |{}| {:>3.0f} %\n",
                        track.rank,
                        track.stream,
                        line,
                        100 * busy_seconds(track) / seconds);
  }
  text +=
      "  F forward, R recompute, B backward, G reduction of gradients, O optimizer, c copies "
      "between host and GPU,\n  ~ communication, : less than half of the column, . nothing\n";
  if (has_blanks) {
    text +=
        "  Blank: the rank is in the step before or after this one. " + span_note(replayed) + "\n";
  }
  return text;
}

}  // namespace sim
