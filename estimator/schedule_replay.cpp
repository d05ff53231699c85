#include "estimator/schedule_replay.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace estimator {
namespace {

constexpr double kNotYet = std::numeric_limits<double>::infinity();
constexpr std::size_t kNothing = std::numeric_limits<std::size_t>::max();

/// One chunk of one stage, and where it stands in the model.
struct Chunk {
  ChunkDuration duration;
  std::size_t own_inputs = 0;     ///< where its inputs begin
  std::size_t next_inputs = 0;    ///< those of the next piece; kNothing on the last
  std::size_t before_inputs = 0;  ///< those of the piece before; kNothing on the first
  std::size_t next_stage = 0, stage_before = 0;
};

/// One stage on its way through its list.
struct Stage {
  std::size_t next_step = 0, end_step = 0;  ///< in the schedule
  double clock = 0, busy_seconds = 0;
  const double* waits_for = nullptr;  ///< the input that its next step lacks
};

class Replayer {
 public:
  Replayer(const PipelineSchedule& schedule,
           const std::vector<ChunkDuration>& durations,
           const ReplayOptions& options)
      : schedule_(schedule),
        options_(options),
        micro_batches_(static_cast<std::size_t>(schedule.shape.micro_batches)),
        chunks_of_stage_(static_cast<std::size_t>(schedule.shape.chunks)),
        forward_inputs_(durations.size() * micro_batches_, kNotYet),
        backward_inputs_(durations.size() * micro_batches_, kNotYet) {
    place_chunks(durations);
    for (std::size_t s = 0; s + 1 < schedule.first_step.size(); ++s) {
      stages_.push_back(
          {.next_step = schedule.first_step[s], .end_step = schedule.first_step[s + 1]});
    }
    std::fill_n(forward_inputs_.begin(), micro_batches_, 0.0);  // the first piece has its tokens
    replay_.gradients_ready_seconds.resize(durations.size());
    if (options.keep_starts) replay_.start_seconds.resize(schedule.steps.size());
  }

  ScheduleReplay run() {
    for (std::size_t s = 0; s < stages_.size(); ++s) runnable_.push_back(s);
    while (!runnable_.empty()) {
      const std::size_t s = runnable_.back();
      runnable_.pop_back();
      run_stage(s);
    }
    for (const Stage& stage : stages_) {
      if (stage.next_step != stage.end_step) {
        throw std::logic_error("the pipeline schedule waits for itself");
      }
      replay_.stages.push_back({.end_seconds = stage.clock, .busy_seconds = stage.busy_seconds});
    }
    return std::move(replay_);
  }

 private:
  void place_chunks(const std::vector<ChunkDuration>& durations) {
    const ScheduleShape& shape = schedule_.shape;
    const auto inputs_of = [&](int64_t piece) {
      const bool exists = piece >= 0 && piece < shape.virtual_stages();
      return exists ? static_cast<std::size_t>(piece) * micro_batches_ : kNothing;
    };
    const auto holder_of = [&](int64_t piece) {
      return static_cast<std::size_t>(
          stage_of(shape, std::clamp<int64_t>(piece, 0, shape.virtual_stages() - 1)));
    };
    for (std::size_t i = 0; i < durations.size(); ++i) {
      const int64_t piece = virtual_stage(shape,
                                          static_cast<int64_t>(i / chunks_of_stage_),
                                          static_cast<int64_t>(i % chunks_of_stage_));
      chunks_.push_back({.duration = durations[i],
                         .own_inputs = inputs_of(piece),
                         .next_inputs = inputs_of(piece + 1),
                         .before_inputs = inputs_of(piece - 1),
                         .next_stage = holder_of(piece + 1),
                         .stage_before = holder_of(piece - 1)});
    }
  }

  /// Until the stage is done or lacks an input.
  void run_stage(std::size_t s) {
    Stage& stage = stages_[s];
    for (; stage.next_step < stage.end_step; ++stage.next_step) {
      const PipelineStep step = schedule_.steps[stage.next_step];
      const std::size_t c = s * chunks_of_stage_ + static_cast<std::size_t>(step.chunk);
      const Chunk& chunk = chunks_[c];
      const std::size_t input = chunk.own_inputs + static_cast<std::size_t>(step.micro_batch);
      double start = stage.clock;
      if (step.kind != StepKind::kBackwardWeight) {
        const double* arrival =
            step.kind == StepKind::kForward ? &forward_inputs_[input] : &backward_inputs_[input];
        if (*arrival == kNotYet) {
          stage.waits_for = arrival;
          return;
        }
        start = std::max(start, *arrival);
      }
      if (step.kind == StepKind::kForward && step.micro_batch == 0) {
        start = std::max(start, chunk.duration.parameters_ready_seconds);
      }
      if (options_.keep_starts) replay_.start_seconds[stage.next_step] = start;
      const double seconds = step_seconds(chunk.duration, step.kind);
      stage.clock = start + seconds;
      stage.busy_seconds += seconds;
      hand_on(stage, c, step);
    }
  }

  void hand_on(Stage& stage, std::size_t c, PipelineStep step) {
    const Chunk& chunk = chunks_[c];
    const auto i = static_cast<std::size_t>(step.micro_batch);
    if (step.kind == StepKind::kForward) {
      if (chunk.next_inputs == kNothing) {
        backward_inputs_[chunk.own_inputs + i] = stage.clock;  // the loss is here
      } else {
        send(stage,
             chunk.duration.send_forward_seconds,
             forward_inputs_[chunk.next_inputs + i],
             chunk.next_stage);
      }
      return;
    }
    if (step.kind != StepKind::kBackwardInput) replay_.gradients_ready_seconds[c] = stage.clock;
    if (step.kind == StepKind::kBackwardWeight || chunk.before_inputs == kNothing) return;
    send(stage,
         chunk.duration.send_backward_seconds,
         backward_inputs_[chunk.before_inputs + i],
         chunk.stage_before);
  }

  void send(Stage& stage, double seconds, double& arrival, std::size_t receiver) {
    arrival = stage.clock + seconds;
    if (!options_.overlap_sends) stage.clock = arrival;
    if (stages_[receiver].waits_for != &arrival) return;
    stages_[receiver].waits_for = nullptr;
    runnable_.push_back(receiver);
  }

  const PipelineSchedule& schedule_;
  const ReplayOptions options_;
  const std::size_t micro_batches_, chunks_of_stage_;
  std::vector<double> forward_inputs_;   ///< when micro-batch i can go forward in each piece
  std::vector<double> backward_inputs_;  ///< when it can go backward
  std::vector<Chunk> chunks_;
  std::vector<Stage> stages_;
  std::vector<std::size_t> runnable_;  ///< stages whose input has come
  ScheduleReplay replay_;
};

}  // namespace

double ScheduleReplay::end_seconds() const {
  double end = 0;
  for (const StageReplay& stage : stages) end = std::max(end, stage.end_seconds);
  return end;
}

double step_seconds(const ChunkDuration& duration, StepKind kind) {
  switch (kind) {
    case StepKind::kForward:
      return duration.forward_seconds;
    case StepKind::kBackward:
      return duration.backward_seconds;
    case StepKind::kBackwardInput:
      return duration.backward_seconds - duration.backward_weight_seconds;
    case StepKind::kBackwardWeight:
      return duration.backward_weight_seconds;
  }
  throw std::logic_error("unknown step");
}

ScheduleReplay replay_schedule(const PipelineSchedule& schedule,
                               const std::vector<ChunkDuration>& durations,
                               const ReplayOptions& options) {
  if (static_cast<int64_t>(durations.size()) != schedule.shape.virtual_stages()) {
    throw std::logic_error("replay_schedule: one duration for each chunk of each stage");
  }
  return Replayer(schedule, durations, options).run();
}

}  // namespace estimator
