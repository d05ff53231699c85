#include "estimator/step/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <vector>
#include "estimator/base/errors.h"
#include "estimator/base/fields.h"

namespace estimator {
namespace {

/// Begin and end of a slice are rounded, not begin and length: then what begins when another ends
/// does so in the file.
int64_t nanoseconds(double seconds) {
  constexpr double kLongest = 9e9;  // nearly 2^63 ns
  if (std::abs(seconds) > kLongest) {
    throw UserError({.what = "the iteration is too long for a trace",
                     .where = fmt::format("{} s, against {} s at most", seconds, kLongest),
                     .help = "ask for the estimate without a trace, and see why it is so long"});
  }
  return std::llround(seconds * 1e9);
}

/// The format's unit, to the nanosecond. Perfetto multiplies by 1,000 and cuts off the rest
/// (src/trace_processor/importers/json/json_utils.cc, CoerceToTs): where the product falls short of
/// the whole number, a further digit keeps it.
std::string microseconds(int64_t nanoseconds) {
  constexpr int64_t kThousand = 1000;
  const double as_read = static_cast<double>(nanoseconds) / kThousand;
  const bool falls_short = static_cast<int64_t>(as_read * kThousand) < nanoseconds;
  return fmt::format(
      "{}.{:03}{}", nanoseconds / kThousand, nanoseconds % kThousand, falls_short ? "1" : "");
}

/// Where an event is drawn, in nanoseconds.
struct Slice {
  int thread = 0;
  int64_t begin = 0, end = 0;
};

/// The threads of one stage. Viewers drop slices of a thread that overlap, so a track has as many
/// threads as it does things at a time: activations and gradients may be on their way together.
class Threads {
 public:
  Slice place(const TimelineEvent& event) {
    constexpr int64_t kRounding = 1;  // sums of the same times in another order
    std::vector<int64_t>& ends = ends_[static_cast<std::size_t>(event.track)];
    int64_t begin = nanoseconds(event.begin_seconds);
    std::size_t free = 0;
    while (free < ends.size() && ends[free] > begin + kRounding) ++free;
    if (free == ends.size()) ends.push_back(begin);
    begin = std::max(begin, ends[free]);
    ends[free] = std::max(begin, nanoseconds(event.end_seconds));
    return {id(event.track, free), begin, ends[free]};
  }

  static int id(Track track, std::size_t number) {
    return static_cast<int>(number * kTracks) + static_cast<int>(track);
  }

  /// At least one, so that the tracks of all stages look alike.
  std::size_t count(Track track) const {
    return std::max<std::size_t>(1, ends_[static_cast<std::size_t>(track)].size());
  }

 private:
  static constexpr std::size_t kTracks = enum_names(Track{}).size();
  std::array<std::vector<int64_t>, kTracks> ends_;  ///< of the last slice of each thread
};

/// Writes events, each on a line. Text is our own and has nothing to escape, but for names.
class TraceWriter {
 public:
  void name_process(int64_t stage, const std::string& name) {
    metadata("process_name", stage, 0, name);
    fmt::format_to(next(),
                   R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,)"
                   R"("args":{{"sort_index":{}}}}})",
                   stage,
                   stage);
  }

  void name_threads(int64_t stage, Track track, const Threads& threads) {
    for (std::size_t i = 0; i < threads.count(track); ++i) {
      const std::string number = i == 0 ? "" : fmt::format(" {}", i + 1);
      metadata("thread_name", stage, Threads::id(track, i), to_string(track) + number);
    }
  }

  void write(int64_t stage, const Slice& slice, const TimelineEvent& event) {
    fmt::format_to(next(),
                   R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},)"
                   R"("args":{{{}}}}})",
                   to_string(event.activity),
                   to_string(event.track),
                   stage,
                   slice.thread,
                   microseconds(slice.begin),
                   microseconds(slice.end - slice.begin),
                   arguments(event));
  }

  /// An arrow from a send to the step that it is for.
  void write_arrow(int64_t stage, const Slice& slice, const TimelineEvent& send, int64_t number) {
    const auto end = [&](const char* phase, int64_t pid, int tid, int64_t when) {
      fmt::format_to(next(),
                     R"({{{},"name":"send","cat":"send","id":{},"pid":{},"tid":{},"ts":{}}})",
                     phase,
                     number,
                     pid,
                     tid,
                     microseconds(when));
    };
    end(R"("ph":"s")", stage, slice.thread, slice.begin);
    // "e": the slice that is open at that time, not the next one to begin.
    end(R"("ph":"f","bp":"e")",
        send.to_stage,
        Threads::id(Track::kCompute, 0),
        nanoseconds(send.used_seconds));
  }

  std::string finish(const StepTimeline& timeline) && {
    text_ += fmt::format("\n],\"displayTimeUnit\":\"ms\",\"otherData\":{}}}\n",
                         Json({{"tool", "onerank"},
                               {"plan", timeline.name},
                               {"iteration_seconds", timeline.iteration_seconds}})
                             .dump());
    return std::move(text_);
  }

 private:
  std::back_insert_iterator<std::string> next() {
    text_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
    return std::back_inserter(text_);
  }

  void metadata(const char* what, int64_t pid, int tid, const std::string& name) {
    fmt::format_to(next(),
                   R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
                   what,
                   pid,
                   tid,
                   name);
  }

  static std::string arguments(const TimelineEvent& event) {
    std::string text;
    const auto add = [&](const char* key, const auto& value) {
      text += fmt::format(R"({}"{}":{})", text.empty() ? "" : ",", key, value);
    };
    if (event.micro_batch != kNone) add("micro_batch", event.micro_batch);
    if (event.chunk != kNone) add("chunk", event.chunk);
    if (event.to_stage != kNone) add("to_stage", event.to_stage);
    if (event.communication_seconds > 0) {
      add("communication_us", microseconds(nanoseconds(event.communication_seconds)));
    }
    return text;
  }

  std::string text_ = "{\"traceEvents\":[";
  bool is_first_ = true;
};

}  // namespace

std::string chrome_trace(const StepTimeline& timeline) {
  TraceWriter writer;
  int64_t sends = 0;
  for (const StageTimeline& stage : timeline.stages) {
    writer.name_process(stage.stage, fmt::format("stage {} (rank {})", stage.stage, stage.rank));
    Threads threads;
    for (const TimelineEvent& event : stage.events) {
      const Slice slice = threads.place(event);
      writer.write(stage.stage, slice, event);
      if (event.to_stage != kNone) writer.write_arrow(stage.stage, slice, event, sends++);
    }
    for (const auto& [track, name] : enum_names(Track{})) {
      writer.name_threads(stage.stage, track, threads);
    }
  }
  return std::move(writer).finish(timeline);
}

}  // namespace estimator
