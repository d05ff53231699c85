#include "estimator/schedule_replay.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace estimator {
namespace {

constexpr double kNotYet = std::numeric_limits<double>::infinity();

/// One stage on its way through its list.
struct Stage {
  std::vector<PipelineStep> steps;
  std::size_t next_step = 0;
  std::vector<double> forward_input;   ///< when micro-batch i can go forward here
  std::vector<double> backward_input;  ///< when micro-batch i can go backward here
  StageReplay result;
};

class Replayer {
 public:
  Replayer(const ScheduleShape& shape, const std::vector<StageDuration>& durations)
      : durations_(durations), stages_(durations.size()) {
    const auto micro_batches = static_cast<std::size_t>(shape.micro_batches);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].steps = stage_steps(shape, static_cast<int64_t>(s));
      stages_[s].forward_input.assign(micro_batches, s == 0 ? 0.0 : kNotYet);
      stages_[s].backward_input.assign(micro_batches, kNotYet);
    }
  }

  ScheduleReplay run() {
    for (std::size_t s = 0; s < stages_.size(); ++s) runnable_.push_back(s);
    while (!runnable_.empty()) {
      const std::size_t s = runnable_.back();
      runnable_.pop_back();
      while (run_next_step(s)) {
      }
    }
    ScheduleReplay replay;
    for (const Stage& stage : stages_) {
      if (stage.next_step != stage.steps.size()) {
        throw std::logic_error("the pipeline schedule waits for itself");
      }
      replay.stages.push_back(stage.result);
    }
    return replay;
  }

 private:
  /// False when the stage is done or its next step still lacks its input.
  bool run_next_step(std::size_t s) {
    Stage& stage = stages_[s];
    if (stage.next_step == stage.steps.size()) return false;
    const PipelineStep step = stage.steps[stage.next_step];
    const auto i = static_cast<std::size_t>(step.micro_batch);
    const bool forward = step.kind == StepKind::kForward;
    const double input = forward ? stage.forward_input[i] : stage.backward_input[i];
    if (input == kNotYet) return false;
    const double duration =
        forward ? durations_[s].forward_seconds : durations_[s].backward_seconds;
    stage.result.end_seconds = std::max(stage.result.end_seconds, input) + duration;
    stage.result.busy_seconds += duration;
    ++stage.next_step;
    forward ? hand_on_activations(s, i) : hand_on_gradients(s, i);
    return true;
  }

  void hand_on_activations(std::size_t s, std::size_t i) {
    const double end = stages_[s].result.end_seconds;
    if (s + 1 == stages_.size()) {
      stages_[s].backward_input[i] = end;  // the loss is here
    } else {
      stages_[s + 1].forward_input[i] = end + durations_[s].send_forward_seconds;
      runnable_.push_back(s + 1);
    }
  }

  void hand_on_gradients(std::size_t s, std::size_t i) {
    if (s == 0) return;
    stages_[s - 1].backward_input[i] =
        stages_[s].result.end_seconds + durations_[s].send_backward_seconds;
    runnable_.push_back(s - 1);
  }

  const std::vector<StageDuration>& durations_;
  std::vector<Stage> stages_;
  std::vector<std::size_t> runnable_;  ///< stages whose input may have come
};

}  // namespace

double ScheduleReplay::end_seconds() const {
  double end = 0;
  for (const StageReplay& stage : stages) end = std::max(end, stage.end_seconds);
  return end;
}

ScheduleReplay replay_schedule(const ScheduleShape& shape,
                               const std::vector<StageDuration>& durations) {
  if (static_cast<int64_t>(durations.size()) != shape.stages) {
    throw std::logic_error("replay_schedule: one duration for each stage");
  }
  return Replayer(shape, durations).run();
}

}  // namespace estimator
