#include "estimator/step/chrome_trace.h"

#include <fmt/format.h>

#include <iterator>

namespace estimator {
namespace {

constexpr double kMicrosecond = 1e-6;

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

  void name_thread(int64_t stage, Track track) {
    metadata("thread_name", stage, static_cast<int>(track), to_string(track));
  }

  void write(int64_t stage, const TimelineEvent& event) {
    fmt::format_to(
        next(),
        R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},)"
        R"("args":{{{}}}}})",
        to_string(event.activity),
        to_string(event.track),
        stage,
        static_cast<int>(event.track),
        event.begin_seconds / kMicrosecond,
        (event.end_seconds - event.begin_seconds) / kMicrosecond,
        arguments(event));
  }

  /// An arrow from a send to the step that it is for.
  void write_arrow(int64_t stage, const TimelineEvent& send, int64_t number) {
    const auto end = [&](const char* phase, int64_t pid, Track track, double seconds) {
      fmt::format_to(next(),
                     R"({{{},"name":"send","cat":"send","id":{},"pid":{},"tid":{},"ts":{:.3f}}})",
                     phase,
                     number,
                     pid,
                     static_cast<int>(track),
                     seconds / kMicrosecond);
    };
    end(R"("ph":"s")", stage, send.track, send.begin_seconds);
    // "e": the slice that is open at that time, not the next one to begin.
    end(R"("ph":"f","bp":"e")", send.to_stage, Track::kCompute, send.used_seconds);
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
      add("communication_us", fmt::format("{:.3f}", event.communication_seconds / kMicrosecond));
    }
    return text;
  }

  std::string text_ = "{\"traceEvents\":[";
  bool is_first_ = true;
};

}  // namespace

std::string chrome_trace(const StepTimeline& timeline) {
  TraceWriter writer;
  for (const StageTimeline& stage : timeline.stages) {
    writer.name_process(stage.stage, fmt::format("stage {} (rank {})", stage.stage, stage.rank));
    for (const Track track : {Track::kCompute, Track::kPipeline, Track::kData}) {
      writer.name_thread(stage.stage, track);
    }
  }
  int64_t sends = 0;
  for (const StageTimeline& stage : timeline.stages) {
    for (const TimelineEvent& event : stage.events) {
      writer.write(stage.stage, event);
      if (event.to_stage != kNone) writer.write_arrow(stage.stage, event, sends++);
    }
  }
  return std::move(writer).finish(timeline);
}

}  // namespace estimator
