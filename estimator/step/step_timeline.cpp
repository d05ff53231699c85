#include "estimator/step/step_timeline.h"

#include <algorithm>
#include <stdexcept>

#include "estimator/step/axis_seconds.h"

namespace estimator {
namespace {

Activity activity_of(StepKind kind) {
  switch (kind) {
    case StepKind::kForward:
      return Activity::kForward;
    case StepKind::kBackward:
      return Activity::kBackward;
    case StepKind::kBackwardInput:
      return Activity::kBackwardInput;
    case StepKind::kBackwardWeight:
      return Activity::kBackwardWeight;
  }
  throw std::logic_error("unknown step");
}

struct ReplayedSchedule {
  PipelineSchedule schedule;
  std::vector<ChunkDuration> durations;
  ScheduleReplay replay;
};

/// When each micro-batch begins forward and backward in each piece of the model.
class StepStarts {
 public:
  explicit StepStarts(const ReplayedSchedule& replayed)
      : micro_batches_(replayed.schedule.shape.micro_batches),
        forward_(replayed.durations.size() * static_cast<std::size_t>(micro_batches_)),
        backward_(forward_.size()) {
    const PipelineSchedule& schedule = replayed.schedule;
    for (int64_t stage = 0; stage < schedule.shape.stages; ++stage) {
      const double* start =
          &replayed.replay.start_seconds[schedule.first_step[static_cast<std::size_t>(stage)]];
      for (const PipelineStep& step : schedule.steps_of(stage)) {
        const int64_t piece = virtual_stage(schedule.shape, stage, step.chunk);
        if (step.kind == StepKind::kForward) forward_[place(piece, step.micro_batch)] = *start;
        if (step.kind == StepKind::kBackward || step.kind == StepKind::kBackwardInput) {
          backward_[place(piece, step.micro_batch)] = *start;
        }
        ++start;
      }
    }
  }

  double of(bool forward, int64_t piece, int64_t micro_batch) const {
    return (forward ? forward_ : backward_)[place(piece, micro_batch)];
  }

 private:
  std::size_t place(int64_t piece, int64_t micro_batch) const {
    return static_cast<std::size_t>(piece * micro_batches_ + micro_batch);
  }

  int64_t micro_batches_;
  std::vector<double> forward_, backward_;
};

/// One replayed stage being written down.
class StageWriter {
 public:
  StageWriter(const ReplayedSchedule& replayed,
              const StepStarts& starts,
              const StageTime& time,
              StageTimeline& timeline)
      : schedule_(replayed.schedule),
        durations_(
            &replayed.durations[static_cast<std::size_t>(timeline.stage) * time.chunks.size()]),
        replay_(replayed.replay),
        starts_(starts),
        time_(time),
        timeline_(timeline),
        knows_memory_(time.allocated_before_bytes.has_value()),
        allocated_(time.allocated_before_bytes.value_or(0)) {}

  void write_steps() {
    const auto first = schedule_.first_step[static_cast<std::size_t>(timeline_.stage)];
    const auto steps = schedule_.steps_of(timeline_.stage);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (is_combined(schedule_.shape, timeline_.stage, steps, i)) {
        write_pair(steps[i], steps[i + 1], replay_.start_seconds[first + i]);
        ++i;
      } else {
        write_step(steps[i], replay_.start_seconds[first + i]);
      }
    }
  }

  /// Returns when the stage is ready for the end of the step.
  double write_data_calls() {
    const auto s = static_cast<std::size_t>(timeline_.stage);
    const GradientReduction reduction =
        reduce_gradients(time_,
                         &replay_.gradients_ready_seconds[s * time_.chunks.size()],
                         replay_.stages[s].end_seconds);
    for (const ChunkCalls& calls : reduction.calls) {
      add(Track::kData,
          Activity::kReduceGradients,
          calls.begin_seconds,
          calls.end_seconds - calls.begin_seconds,
          static_cast<std::size_t>(calls.chunk));
    }
    return reduction.ready_seconds;
  }

  void write_end(double begin_seconds) {
    const double communication = sum_of(time_.step_end.communication_seconds);
    add(Track::kData, Activity::kStepEnd, begin_seconds, communication);
    begin_seconds += communication;
    add(Track::kCompute, Activity::kOptimizer, begin_seconds, time_.step_end.compute_seconds);
    begin_seconds += time_.step_end.compute_seconds;
    add(Track::kData, Activity::kGatherParameters, begin_seconds, time_.gather_seconds);
  }

  void write_data_loading(double begin_seconds, double seconds) {
    add(Track::kCompute, Activity::kDataLoading, begin_seconds, seconds);
  }

 private:
  /// The overlapped gathers of a chunk end as its first forward has what it waits for last.
  void write_gathers(std::size_t c, double forward_begin) {
    const GatherTime& gathers = time_.chunks[c].gathers;
    const double begin = time_.gathers_begin_with_step ? time_.gathers_begin_seconds(c)
                                                       : forward_begin - gathers.added_seconds;
    const double before_step = std::clamp(-begin, 0.0, gathers.seconds);
    add(Track::kData,
        Activity::kGatherParameters,
        begin + before_step,
        gathers.seconds - before_step,
        c);
  }

  /// Steps that run together are drawn one after the other, each as long as its share of what both
  /// would take alone, without their works and memory.
  void write_pair(const PipelineStep& forward, const PipelineStep& backward, double begin_seconds) {
    const ChunkTime& chunk = time_.chunks[static_cast<std::size_t>(forward.chunk)];
    const PartTime& pair = chunk.pairs.at(backward.chunk);
    const double first = chunk.forward.total_seconds();
    const double second =
        time_.chunks[static_cast<std::size_t>(backward.chunk)].backward.total_seconds();
    const double end_seconds = begin_seconds + pair.total_seconds();
    const double middle = begin_seconds + pair.total_seconds() * first / (first + second);
    const double communication = sum_of(pair.communication_seconds) / 2;
    knows_memory_ = false;
    for (const bool is_forward : {true, false}) {
      const PipelineStep& step = is_forward ? forward : backward;
      timeline_.events.push_back({.activity = activity_of(step.kind),
                                  .begin_seconds = is_forward ? begin_seconds : middle,
                                  .end_seconds = is_forward ? middle : end_seconds,
                                  .micro_batch = step.micro_batch,
                                  .chunk = step.chunk,
                                  .communication_seconds = communication});
      write_send(step, end_seconds);
    }
  }

  void write_step(const PipelineStep& step, double begin_seconds) {
    const auto c = static_cast<std::size_t>(step.chunk);
    const ChunkDuration& duration = durations_[c];
    const ChunkTime& chunk = time_.chunks[c];
    const bool forward = step.kind == StepKind::kForward;
    if (forward && step.micro_batch == 0) write_gathers(c, begin_seconds);
    double end_seconds = begin_seconds + step_seconds(duration, step.kind);
    if (completes_gradients(step, schedule_.shape)) {
      end_seconds += duration.last_backward_added_seconds;
    }
    TimelineEvent event{.activity = activity_of(step.kind),
                        .begin_seconds = begin_seconds,
                        .end_seconds = end_seconds,
                        .micro_batch = step.micro_batch,
                        .chunk = step.chunk,
                        .communication_seconds = sum_of(
                            (forward ? chunk.forward : chunk.backward).communication_seconds)};
    timeline_.events.push_back(event);
    write_memory(step.kind, chunk, event);
    if (step.micro_batch == schedule_.shape.micro_batches - 1) write_works(step, begin_seconds);
    write_send(step, event.end_seconds);
  }

  void write_send(const PipelineStep& step, double begin_seconds) {
    if (step.kind == StepKind::kBackwardWeight) return;
    const ChunkDuration& duration = durations_[static_cast<std::size_t>(step.chunk)];
    const bool forward = step.kind == StepKind::kForward;
    const double send = forward ? duration.send_forward_seconds : duration.send_backward_seconds;
    if (send == 0) return;
    const int64_t to_piece =
        virtual_stage(schedule_.shape, timeline_.stage, step.chunk) + (forward ? 1 : -1);
    timeline_.events.push_back(
        {.track = Track::kPipeline,
         .activity = forward ? Activity::kSendForward : Activity::kSendBackward,
         .begin_seconds = begin_seconds,
         .end_seconds = begin_seconds + send,
         .micro_batch = step.micro_batch,
         .chunk = step.chunk,
         .to_stage = stage_of(schedule_.shape, to_piece),
         .used_seconds = starts_.of(forward, to_piece, step.micro_batch)});
  }

  /// What was allocated in the run's forward or backward of the chunk, above what is allocated now.
  /// A backward in two steps frees memory otherwise, so nothing is known from there on.
  void write_memory(StepKind kind, const ChunkTime& chunk, const TimelineEvent& event) {
    const bool is_forward = kind == StepKind::kForward;
    const auto& change = is_forward ? chunk.forward_memory : chunk.backward_memory;
    if (!change || (!is_forward && kind != StepKind::kBackward)) knows_memory_ = false;
    if (!knows_memory_) return;
    const double seconds = event.end_seconds - event.begin_seconds;
    const std::size_t spans = change->largest_bytes.size();
    for (std::size_t i = 0; i < spans; ++i) {
      timeline_.memory.push_back(
          {.seconds =
               event.begin_seconds + seconds * static_cast<double>(i) / static_cast<double>(spans),
           .bytes = allocated_ + change->largest_bytes[i]});
    }
    allocated_ += change->end_bytes;
    timeline_.memory.push_back({.seconds = event.end_seconds, .bytes = allocated_});
  }

  /// A backward in two steps has its kernels in another order.
  void write_works(const PipelineStep& step, double begin_seconds) {
    if (step.kind != StepKind::kForward && step.kind != StepKind::kBackward) return;
    for (ShownWork work : time_.chunks[static_cast<std::size_t>(step.chunk)].works) {
      const bool is_of_forward = work.direction == Direction::kForward;
      if (is_of_forward != (step.kind == StepKind::kForward)) continue;
      work.begin_seconds += begin_seconds;
      work.end_seconds += begin_seconds;
      timeline_.works.push_back(std::move(work));
    }
  }

  void add(Track track,
           Activity activity,
           double begin_seconds,
           double seconds,
           std::size_t chunk = static_cast<std::size_t>(kNone)) {
    if (seconds <= 0) return;
    timeline_.events.push_back({.track = track,
                                .activity = activity,
                                .begin_seconds = begin_seconds,
                                .end_seconds = begin_seconds + seconds,
                                .chunk = static_cast<int64_t>(chunk)});
  }

  const PipelineSchedule& schedule_;
  const ChunkDuration* durations_;  ///< of the stage's chunks
  const ScheduleReplay& replay_;
  const StepStarts& starts_;
  const StageTime& time_;
  StageTimeline& timeline_;
  bool knows_memory_;
  int64_t allocated_;  ///< bytes, after the steps so far
};

}  // namespace

StepTimeline step_timeline(const Plan& plan,
                           const ParallelLayout& layout,
                           const Fabric& fabric,
                           const std::vector<StageTime>& stages) {
  ReplayedSchedule replayed;
  replayed.schedule = make_schedule(schedule_shape(plan));
  replayed.durations = chunk_durations(replayed.schedule.shape, stages, layout, fabric);
  replayed.replay = replay_schedule(replayed.schedule,
                                    replayed.durations,
                                    {.overlap_sends = overlaps_sends(plan), .keep_starts = true});
  const StepStarts starts(replayed);

  StepTimeline timeline;
  timeline.name = plan.name;
  timeline.stages.resize(stages.size());
  double ready_seconds = 0, end_seconds = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    StageTimeline& stage = timeline.stages[s];
    stage.stage = static_cast<int64_t>(s);
    stage.rank = layout.rank({.pipeline = stage.stage});
    StageWriter writer(replayed, starts, stages[s], stage);
    writer.write_steps();
    ready_seconds = std::max(ready_seconds, writer.write_data_calls());
    end_seconds = std::max(end_seconds, end_of_step(stages[s]));
  }
  const double step_seconds = ready_seconds + end_seconds;
  const double loading_seconds = data_loading_wait(plan, step_seconds);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    StageWriter writer(replayed, starts, stages[s], timeline.stages[s]);
    writer.write_end(ready_seconds);
    writer.write_data_loading(step_seconds, loading_seconds);
  }
  timeline.iteration_seconds = step_seconds + loading_seconds;
  return timeline;
}

}  // namespace estimator
