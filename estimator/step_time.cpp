#include "estimator/step_time.h"

#include <algorithm>

#include "estimator/communication_time.h"
#include "estimator/schedule_replay.h"

namespace estimator {
namespace {

/// Seconds from `stage` to its neighbour; 0 when there is nothing to send.
double transfer_seconds(int64_t bytes,
                        int64_t stage,
                        int64_t neighbour,
                        const ParallelLayout& layout,
                        const Fabric& fabric) {
  if (bytes == 0) return 0;
  return send_seconds(
      bytes, layout.rank({.pipeline = stage}), layout.rank({.pipeline = neighbour}), fabric);
}

std::vector<StageDuration> durations_of(const std::vector<StageTime>& stages,
                                        const ParallelLayout& layout,
                                        const Fabric& fabric) {
  std::vector<StageDuration> durations;
  const auto last = static_cast<int64_t>(stages.size()) - 1;
  for (int64_t s = 0; s <= last; ++s) {
    const StageTime& stage = stages[static_cast<std::size_t>(s)];
    StageDuration duration{.forward_seconds = stage.forward.total_seconds(),
                           .backward_seconds = stage.backward.total_seconds()};
    if (s < last) {
      duration.send_forward_seconds =
          transfer_seconds(stage.send_forward_bytes, s, s + 1, layout, fabric);
    }
    if (s > 0) {
      duration.send_backward_seconds =
          transfer_seconds(stage.send_backward_bytes, s, s - 1, layout, fabric);
    }
    durations.push_back(duration);
  }
  return durations;
}

std::vector<StageDuration> without_transfers(std::vector<StageDuration> durations) {
  for (StageDuration& duration : durations) {
    duration.send_forward_seconds = duration.send_backward_seconds = 0;
  }
  return durations;
}

double exposed_reduce(const StageTime& stage) {
  return stage.reduce_gradients.exposed_seconds(stage.backward.total_seconds());
}

double exposed_gather(const StageTime& stage) {
  return stage.gather_parameters.exposed_seconds(stage.forward.total_seconds());
}

double end_of_step(const StageTime& stage) {
  return stage.step_end.total_seconds() + exposed_gather(stage);
}

void add(ExposedCommunication& sum, const ExposedCommunication& part, double times) {
  sum.tensor += times * part.tensor;
  sum.pipeline += times * part.pipeline;
  sum.data += times * part.data;
  sum.context += times * part.context;
  sum.expert += times * part.expert;
}

/// The parts of a stage's step but for its waiting.
StepTime working_time(const StageTime& stage, double micro_batches) {
  StepTime time;
  time.compute_seconds =
      micro_batches * (stage.forward.compute_seconds + stage.backward.compute_seconds);
  time.optimizer_seconds = stage.step_end.compute_seconds;
  ExposedCommunication& exposed = time.exposed_communication_seconds;
  add(exposed, stage.forward.communication_seconds, micro_batches);
  add(exposed, stage.backward.communication_seconds, micro_batches);
  add(exposed, stage.step_end.communication_seconds, 1);
  exposed.data += exposed_reduce(stage) + exposed_gather(stage);
  return time;
}

}  // namespace

StepTime step_time(const Plan& plan,
                   const ParallelLayout& layout,
                   const Fabric& fabric,
                   const std::vector<StageTime>& stages) {
  const ScheduleShape shape{.kind = plan.parallelism.pipeline_schedule,
                            .stages = static_cast<int64_t>(stages.size()),
                            .micro_batches = plan.micro_batches()};
  const std::vector<StageDuration> durations = durations_of(stages, layout, fabric);
  const ScheduleReplay replay = replay_schedule(shape, durations);
  const ScheduleReplay free_transfers = replay_schedule(shape, without_transfers(durations));

  std::size_t slowest = 0;
  double ready_seconds = 0, end_seconds = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const double ready = replay.stages[s].end_seconds + exposed_reduce(stages[s]);
    if (ready > ready_seconds) {
      ready_seconds = ready;
      slowest = s;
    }
    end_seconds = std::max(end_seconds, end_of_step(stages[s]));
  }

  StepTime time = working_time(stages[slowest], static_cast<double>(shape.micro_batches));
  time.iteration_seconds = ready_seconds + end_seconds;
  time.exposed_communication_seconds.pipeline +=
      replay.stages[slowest].end_seconds - free_transfers.stages[slowest].end_seconds;
  time.bubble_seconds =
      free_transfers.stages[slowest].idle_seconds() + end_seconds - end_of_step(stages[slowest]);
  return time;
}

}  // namespace estimator
