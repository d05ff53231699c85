#include "sim/cli/page/step_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "sim/cli/report/program_timeline_text.h"
#include "sim/cli/report/timeline_columns.h"

namespace sim {
namespace {

using estimator::Activity;
using estimator::Json;
using estimator::StageTimeline;
using estimator::TimelineEvent;
using estimator::Track;

constexpr std::size_t kMostSlices = 12'000;
constexpr std::size_t kMostCells = 200'000;  // of all lines
constexpr std::size_t kFewestCells = 100, kMostCellsOfLine = 1500;

struct Slice {
  char letter = '?';
  double begin = 0, end = 0;  // in seconds
  int64_t micro_batch = estimator::kNone;
  int64_t chunk = estimator::kNone;
};

struct Line {
  std::string name;
  std::vector<Slice> slices;  // in time order, none over another
};

char letter_of_activity(Activity activity) {
  switch (activity) {
    case Activity::kForward:
      return 'f';
    case Activity::kBackward:
      return 'b';
    case Activity::kBackwardInput:
      return 'i';
    case Activity::kBackwardWeight:
      return 'w';
    case Activity::kOptimizer:
      return 'o';
    case Activity::kDataLoading:
      return 'l';
    case Activity::kReduceGradients:
      return 'g';
    default:
      return 'd';
  }
}

/// The work, and in the gaps of it what `beside` has there.
std::vector<Slice> with_gaps_filled(const std::vector<Slice>& work, std::vector<Slice> beside) {
  std::vector<Slice> all = work;
  for (Slice& slice : beside) {
    for (const Slice& other : work) {
      if (other.end <= slice.begin || other.begin >= slice.end) continue;
      if (other.begin > slice.begin) {
        Slice before = slice;
        before.end = other.begin;
        all.push_back(before);
      }
      slice.begin = std::max(slice.begin, other.end);
    }
    if (slice.end > slice.begin) all.push_back(slice);
  }
  std::sort(
      all.begin(), all.end(), [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
  return all;
}

Line line_of_stage(const StageTimeline& stage) {
  std::vector<Slice> work, beside;
  for (const TimelineEvent& event : stage.events) {
    if (event.track == Track::kPipeline) continue;
    (event.track == Track::kCompute ? work : beside)
        .push_back({letter_of_activity(event.activity),
                    event.begin_seconds,
                    event.end_seconds,
                    event.micro_batch,
                    event.chunk});
  }
  return {.name = fmt::format("stage {}", stage.stage),
          .slices = with_gaps_filled(work, std::move(beside))};
}

/// Works of one stream follow each other. Neighbours of one kind without a gap are one slice.
Line line_of_stream(const StreamTrack& track) {
  Line line{.name = fmt::format("rank {}, stream {}", track.rank, track.stream), .slices = {}};
  for (const StreamWork& work : track.works) {
    const char letter = work.letter == '~' ? 'n' : static_cast<char>(std::tolower(work.letter));
    const bool follows = !line.slices.empty() && line.slices.back().letter == letter &&
                         work.begin_seconds <= line.slices.back().end;
    if (follows) {
      line.slices.back().end = std::max(line.slices.back().end, work.end_seconds);
    } else {
      line.slices.push_back({letter, work.begin_seconds, work.end_seconds});
    }
  }
  return line;
}

Json slices_json(const Line& line, double seconds) {
  constexpr double kParts = 1e6;
  int64_t at = 0;
  Json slices = Json::array();
  for (const Slice& slice : line.slices) {
    const int64_t begin = std::max<int64_t>(at, std::llround(slice.begin / seconds * kParts));
    const int64_t end = std::llround(slice.end / seconds * kParts);
    if (end <= begin) continue;
    Json entry = {std::string(1, slice.letter), begin - at, end - begin};
    if (slice.micro_batch != estimator::kNone) entry.push_back(slice.micro_batch);
    if (slice.chunk > 0) entry.push_back(slice.chunk);
    slices.push_back(std::move(entry));
    at = end;
  }
  return slices;
}

std::string cells_of(const Line& line, double seconds, std::size_t cells) {
  TimelineColumns columns(static_cast<int>(cells), seconds, '\0', kIdleColumn);
  for (const Slice& slice : line.slices) columns.add(slice.letter, slice.begin, slice.end);
  return columns.text();
}

std::string lines_json(const std::vector<Line>& lines, double seconds) {
  std::size_t slices = 0;
  bool has_chunks = false;
  for (const Line& line : lines) {
    slices += line.slices.size();
    for (const Slice& slice : line.slices) has_chunks = has_chunks || slice.chunk > 0;
  }
  Json json = {{"seconds", seconds}, {"has_chunks", has_chunks}, {"lines", Json::array()}};
  if (!(seconds > 0)) return json.dump();
  const std::size_t cells = std::clamp(
      kMostCells / std::max<std::size_t>(lines.size(), 1), kFewestCells, kMostCellsOfLine);
  for (const Line& line : lines) {
    Json drawn = {{"name", line.name}};
    if (slices <= kMostSlices) {
      drawn["slices"] = slices_json(line, seconds);
    } else {
      drawn["cells"] = cells_of(line, seconds, cells);
    }
    json["lines"].push_back(std::move(drawn));
  }
  return json.dump();
}

/// `seconds`: of one iteration.
TitledTable busy_table(const std::vector<Line>& lines, double seconds) {
  Table table({{"line", Align::kLeft},
               {"busy", Align::kRight, "computed: all that is drawn of it"},
               {"share", Align::kRight, "of the iteration"}});
  for (const Line& line : lines) {
    double busy = 0;
    for (const Slice& slice : line.slices) busy += slice.end - slice.begin;
    table.add_row({line.name,
                   estimator::format_duration(busy),
                   fmt::format("{:.1f} %", seconds > 0 ? 100 * busy / seconds : 0)});
  }
  return {.title = "How long each of them is busy", .table = std::move(table), .notes = {}};
}

/// Ranks that begin the iteration one after the other are drawn for longer than it takes.
StepPicture picture_of(const std::vector<Line>& lines, double drawn_seconds, double seconds) {
  return {.json = lines_json(lines, drawn_seconds), .busy = busy_table(lines, seconds)};
}

}  // namespace

StepPicture step_picture(const estimator::StepTimeline& timeline) {
  std::vector<Line> lines;
  for (const StageTimeline& stage : timeline.stages) lines.push_back(line_of_stage(stage));
  return picture_of(lines, timeline.iteration_seconds, timeline.iteration_seconds);
}

StepPicture step_picture(const estimator::ProgramReplay& replayed) {
  std::vector<Line> lines;
  for (const StreamTrack& track : stream_tracks(replayed)) lines.push_back(line_of_stream(track));
  StepPicture picture = picture_of(lines, replayed.span().seconds(), replayed.iteration_seconds());
  const std::string note = span_note(replayed);
  if (!note.empty()) picture.busy.notes.push_back(note);
  return picture;
}

}  // namespace sim
