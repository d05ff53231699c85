#include "estimator/step/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "estimator/base/fields.h"
#include "estimator/base/trace_event_file.h"
#include "estimator/base/units.h"
#include "estimator/replay/module_slices.h"

namespace estimator {
namespace {

/// The threads of one stage. Viewers drop slices of a thread that overlap, so a track has as many
/// threads as it does things at a time: activations and gradients may be on their way together.
class Threads {
 public:
  TraceSlice place(int64_t stage, const TimelineEvent& event) {
    constexpr int64_t kRounding = 1;  // sums of the same times in another order
    std::vector<int64_t>& ends = ends_[static_cast<std::size_t>(event.track)];
    int64_t begin = trace_nanoseconds(event.begin_seconds);
    std::size_t free = 0;
    while (free < ends.size() && ends[free] > begin + kRounding) ++free;
    if (free == ends.size()) ends.push_back(begin);
    begin = std::max(begin, ends[free]);
    ends[free] = std::max(begin, trace_nanoseconds(event.end_seconds));
    return {stage, id(event.track, free), begin, ends[free]};
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

std::string arguments(const TimelineEvent& event) {
  std::string text;
  const auto add = [&](const char* key, const auto& value) {
    text += fmt::format(R"({}"{}":{})", text.empty() ? "" : ",", key, value);
  };
  if (event.micro_batch != kNone) add("micro_batch", event.micro_batch);
  if (event.chunk != kNone) add("chunk", event.chunk);
  if (event.to_stage != kNone) add("to_stage", event.to_stage);
  if (event.communication_seconds > 0) {
    add("communication_us", trace_microseconds(trace_nanoseconds(event.communication_seconds)));
  }
  return text;
}

/// From a send to the step that it is for.
void add_arrow(const TraceSlice& send, const TimelineEvent& event, TraceEventFile& file) {
  const TraceSlice use{.process = event.to_stage,
                       .thread = Threads::id(Track::kCompute, 0),
                       .begin = trace_nanoseconds(event.used_seconds)};
  file.add_arrow(send, use, "send");
}

/// The tracks of one micro-batch's kernels and calls, below those of the step.
constexpr int64_t kModuleThread = 1000;
constexpr int64_t kFirstStreamThread = 1001;
constexpr int64_t kFirstCallThread = 1'000'000;
constexpr int64_t kCallThreadsOfGroup = 1000;

int64_t thread_of(const ShownWork& work) {
  if (!work.group) return kFirstStreamThread + work.stream;
  const int64_t stream = std::min(work.stream, kCallThreadsOfGroup - 1);
  return kFirstCallThread + static_cast<int64_t>(*work.group) * kCallThreadsOfGroup + stream;
}

std::string thread_name(const ShownWork& work) {
  if (!work.group) return fmt::format("stream {}", work.stream);
  return fmt::format("NCCL, {} ranks, stream {}", to_string(*work.group), work.stream);
}

std::string arguments(const ShownWork& work) {
  const std::string members = Json({{"module", work.module},
                                    {"direction", to_string(work.direction)},
                                    {"bytes", work.bytes},
                                    {"stream", work.stream}})
                                  .dump();
  return members.substr(1, members.size() - 2);
}

void add_works(const StageTimeline& stage, TraceEventFile& file) {
  if (stage.works.empty()) return;
  ModuleSlices modules(stage.stage, kModuleThread, file);
  std::map<int64_t, std::string> threads = {{kModuleThread, "modules of one micro-batch"}};
  for (const ShownWork& work : stage.works) {
    const TraceSlice slice{.process = stage.stage,
                           .thread = thread_of(work),
                           .begin = std::max<int64_t>(0, trace_nanoseconds(work.begin_seconds)),
                           .end = std::max<int64_t>(0, trace_nanoseconds(work.end_seconds))};
    file.add(slice, work.name, work.category, arguments(work));
    threads[slice.thread] = thread_name(work);
    if (work.stream == kMainStream) {
      modules.add(work.direction, work.module, slice.begin, slice.end);
    }
  }
  modules.close();
  for (const auto& [thread, name] : threads) file.name_thread(stage.stage, thread, name);
}

void add_memory(const StageTimeline& stage, TraceEventFile& file) {
  for (const MemoryPoint& point : stage.memory) {
    file.add_counter(stage.stage,
                     trace_nanoseconds(point.seconds),
                     "allocated (GiB)",
                     static_cast<double>(point.bytes) / static_cast<double>(kGiB));
  }
}

void name_threads(int64_t stage, Track track, const Threads& threads, TraceEventFile& file) {
  for (std::size_t i = 0; i < threads.count(track); ++i) {
    const std::string number = i == 0 ? "" : fmt::format(" {}", i + 1);
    file.name_thread(stage, Threads::id(track, i), to_string(track) + number);
  }
}

}  // namespace

std::string chrome_trace(const StepTimeline& timeline) {
  TraceEventFile file;
  for (const StageTimeline& stage : timeline.stages) {
    file.name_process(stage.stage, fmt::format("stage {} (rank {})", stage.stage, stage.rank));
    Threads threads;
    for (const TimelineEvent& event : stage.events) {
      const TraceSlice slice = threads.place(stage.stage, event);
      file.add(slice, to_string(event.activity), to_string(event.track), arguments(event));
      if (event.to_stage != kNone) add_arrow(slice, event, file);
    }
    add_works(stage, file);
    add_memory(stage, file);
    for (const auto& [track, name] : enum_names(Track{})) {
      name_threads(stage.stage, track, threads, file);
    }
  }
  return std::move(file).finish(Json({{"tool", "onerank"},
                                      {"plan", timeline.name},
                                      {"iteration_seconds", timeline.iteration_seconds}})
                                    .dump());
}

}  // namespace estimator
