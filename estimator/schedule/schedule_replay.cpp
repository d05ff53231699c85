#include "estimator/schedule/schedule_replay.h"

#include <algorithm>
#include <stdexcept>

#include "estimator/schedule/schedule_replayer.h"

namespace estimator {

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
  Replayer<1> replayer(schedule, {&durations}, options);
  replayer.run();
  return replayer.result(0);
}

std::array<ScheduleReplay, kVariants> replay_variants(const PipelineSchedule& schedule,
                                                      const DurationVariants& variants,
                                                      const ReplayOptions& options) {
  Replayer<kVariants> replayer(schedule, {&variants[0], &variants[1], &variants[2]}, options);
  replayer.run();
  return {replayer.result(0), replayer.result(1), replayer.result(2)};
}

}  // namespace estimator
