#include "estimator/step/step_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "estimator/communication/communication_time.h"
#include "estimator/plan/frameworks.h"
#include "estimator/schedule/folded_replay.h"

namespace estimator {
namespace {

using Durations = std::vector<ChunkDuration>;

/// What one stage sends to another, and where the two lie.
struct Transfer {
  int64_t bytes = 0;
  int64_t from_rank = 0, to_rank = 0;

  double seconds(const Fabric& fabric) const {
    return bytes == 0 || from_rank == to_rank ? 0 : send_seconds(bytes, from_rank, to_rank, fabric);
  }
  PortUse use(double seconds, const Fabric& fabric) const {
    return send_port_use(bytes, from_rank, to_rank, seconds, fabric);
  }
};

/// When each chunk of a stage can start forward, its gathers running one after the other from
/// `free_seconds` on.
void add_parameter_waits(const StageTime& stage, double free_seconds, ChunkDuration* durations) {
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    const BucketTime& gather = stage.chunks[c].gather_parameters;
    if (!gather.overlappable) continue;
    durations[c].parameters_ready_seconds =
        gather.ready_at(free_seconds, durations[c].forward_seconds);
    free_seconds += gather.sum_seconds;
  }
}

/// What a send of `seconds` after the last backward takes longer beside the buckets that are not
/// reduced by then. Sends before it have ended.
double added_to_send(const BucketTime& reduce,
                     double backward_seconds,
                     double seconds,
                     const PortUse& use) {
  const double left = reduce.sum_seconds - reduce.beside(backward_seconds);
  return lengthening(reduce.use, use) * std::min(left, seconds);
}

/// The parts of a stage's step but for its waiting.
StepTime working_time(const StageTime& stage, double micro_batches) {
  const PartTime forward = stage.forward(), backward = stage.backward();
  StepTime time;
  time.compute_seconds = micro_batches * (forward.compute_seconds + backward.compute_seconds);
  time.optimizer_seconds = stage.step_end.compute_seconds;
  time.offload = stage.offload;
  ExposedCommunication& exposed = time.exposed_communication_seconds;
  add(exposed, forward.communication_seconds, micro_batches);
  add(exposed, backward.communication_seconds, micro_batches);
  add(exposed, stage.step_end.communication_seconds);
  time.compute_seconds += stage.first_added.compute_seconds;
  add(exposed, stage.first_added.communication_seconds);
  exposed.data += gather_at_the_end(stage);
  return time;
}

/// What the stages wait for, taken away one after the other.
enum WaitVariant : std::size_t { kAllWaits, kDataRanksReady, kTransfersFree };

std::array<ScheduleReplay, kVariants> replay_without_waits(const ScheduleShape& shape,
                                                           const Durations& durations,
                                                           const std::vector<StageTime>& stages,
                                                           bool overlap_sends) {
  DurationVariants variants;
  variants[kAllWaits] = durations;
  variants[kDataRanksReady] = durations;
  for (ChunkDuration& duration : variants[kDataRanksReady]) {
    duration.parameters_ready_seconds = 0;
    duration.last_backward_added_seconds = duration.last_send_added_seconds = 0;
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    variants[kDataRanksReady][s * stages[s].chunks.size()].parameters_ready_seconds =
        stages[s].first_added.total_seconds();
  }
  variants[kTransfersFree] = variants[kDataRanksReady];
  for (ChunkDuration& duration : variants[kTransfersFree]) {
    duration.send_forward_seconds = duration.send_backward_seconds = 0;
  }
  return replay_shape(shape, variants, overlap_sends);
}

}  // namespace

bool overlaps_sends(const Plan& plan) {
  if (plan.time.launch_blocking) return false;
  if (plan.parallelism.virtual_stages > 1) return plan.parallelism.overlap_p2p_communication;
  return traits_of(plan.training.framework).overlapped_sends;
}

std::vector<double> gather_begins(const std::vector<StageTime>& stages) {
  std::vector<double> begins;
  for (const StageTime& stage : stages) begins.push_back(end_of_step(stage));
  const double slowest = *std::max_element(begins.begin(), begins.end());
  for (double& begin : begins) begin -= slowest;
  return begins;
}

std::vector<ChunkDuration> chunk_durations(const ScheduleShape& shape,
                                           const std::vector<StageTime>& stages,
                                           const ParallelLayout& layout,
                                           const Fabric& fabric) {
  Durations durations;
  durations.reserve(static_cast<std::size_t>(shape.virtual_stages()));
  const int64_t last_piece = shape.virtual_stages() - 1;
  const std::vector<double> gather_begin = gather_begins(stages);
  for (int64_t s = 0; s < shape.stages; ++s) {
    const StageTime& stage = stages[static_cast<std::size_t>(s)];
    const auto transfer = [&](int64_t bytes, int64_t to_piece) {
      return Transfer{bytes,
                      layout.rank({.pipeline = s}),
                      layout.rank({.pipeline = stage_of(shape, to_piece)})};
    };
    for (int64_t c = 0; c < shape.chunks; ++c) {
      const ChunkTime& chunk = stage.chunks[static_cast<std::size_t>(c)];
      const int64_t piece = virtual_stage(shape, s, c);
      ChunkDuration duration{.forward_seconds = chunk.forward.total_seconds(),
                             .backward_seconds = chunk.backward.total_seconds()};
      if (piece < last_piece) {
        duration.send_forward_seconds =
            transfer(stage.send_forward_bytes, piece + 1).seconds(fabric);
      }
      const BucketTime& reduce = chunk.reduce_gradients;
      duration.last_backward_added_seconds =
          reduce.port_share * reduce.beside(duration.backward_seconds);
      if (piece > 0) {
        const Transfer gradients = transfer(stage.send_backward_bytes, piece - 1);
        const double seconds = gradients.seconds(fabric);
        duration.send_backward_seconds = seconds;
        if (reduce.overlappable && seconds > 0) {
          duration.last_send_added_seconds = added_to_send(
              reduce, duration.backward_seconds, seconds, gradients.use(seconds, fabric));
        }
      }
      durations.push_back(duration);
    }
    add_parameter_waits(stage,
                        gather_begin[static_cast<std::size_t>(s)],
                        &durations[static_cast<std::size_t>(s * shape.chunks)]);
    durations[static_cast<std::size_t>(s * shape.chunks)].parameters_ready_seconds +=
        stage.first_added.total_seconds();
  }
  return durations;
}

GradientReduction reduce_gradients(const StageTime& stage,
                                   const ChunkDuration* durations,
                                   const double* gradients_ready,
                                   double end_seconds) {
  std::vector<std::size_t> order(stage.chunks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return gradients_ready[a] < gradients_ready[b];
  });
  GradientReduction reduction;
  double free_seconds = 0, slowed_seconds = 0;
  const auto add_calls = [&](std::size_t c, double end) {
    const double begin = end - stage.chunks[c].reduce_gradients.sum_seconds;
    if (end > begin) reduction.calls.push_back({static_cast<int64_t>(c), begin, end});
    free_seconds = end;
    return begin;
  };
  for (const std::size_t c : order) {
    const BucketTime& reduce = stage.chunks[c].reduce_gradients;
    const ChunkDuration& duration = durations[c];
    if (!reduce.overlappable) continue;
    const double begin =
        add_calls(c,
                  reduce.reduced_at(gradients_ready[c],
                                    duration.backward_seconds,
                                    free_seconds + duration.last_backward_added_seconds) +
                      duration.last_send_added_seconds);
    const double beside = std::min(reduce.sum_seconds, end_seconds - begin);
    slowed_seconds += reduce.compute_share * std::max(0.0, beside);
  }
  free_seconds = std::max(end_seconds, free_seconds) + slowed_seconds;
  for (const std::size_t c : order) {
    const BucketTime& reduce = stage.chunks[c].reduce_gradients;
    if (!reduce.overlappable) add_calls(c, free_seconds + reduce.sum_seconds);
  }
  reduction.ready_seconds = free_seconds;
  return reduction;
}

double gather_at_the_end(const StageTime& stage) {
  double seconds = 0;
  for (const ChunkTime& chunk : stage.chunks) {
    if (!chunk.gather_parameters.overlappable) seconds += chunk.gather_parameters.sum_seconds;
  }
  return seconds;
}

double end_of_step(const StageTime& stage) {
  return stage.step_end.total_seconds() + gather_at_the_end(stage);
}

double data_loading_wait(const Plan& plan, double step_seconds) {
  const double loading = plan.time.data_loading_seconds * static_cast<double>(plan.micro_batches());
  return std::max(0.0, loading - step_seconds);
}

StepTime step_time(const Plan& plan,
                   const ParallelLayout& layout,
                   const Fabric& fabric,
                   const std::vector<StageTime>& stages) {
  const ScheduleShape shape = schedule_shape(plan);
  const Durations durations = chunk_durations(shape, stages, layout, fabric);
  const auto replays = replay_without_waits(shape, durations, stages, overlaps_sends(plan));

  std::size_t slowest = 0;
  double ready_seconds = 0, exposed_reduce = 0, end_seconds = 0;
  const ScheduleReplay& replay = replays[kAllWaits];
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const double end = replay.stages[s].end_seconds;
    const std::size_t first = s * stages[s].chunks.size();
    const double ready =
        reduce_gradients(stages[s], &durations[first], &replay.gradients_ready_seconds[first], end)
            .ready_seconds;
    if (ready > ready_seconds) {
      ready_seconds = ready;
      exposed_reduce = ready - end;
      slowest = s;
    }
    end_seconds = std::max(end_seconds, end_of_step(stages[s]));
  }

  StepTime time = working_time(stages[slowest], static_cast<double>(plan.micro_batches()));
  const double step_seconds = ready_seconds + end_seconds;
  time.data_loading_seconds = data_loading_wait(plan, step_seconds);
  time.iteration_seconds = step_seconds + time.data_loading_seconds;
  const auto saved = [&](WaitVariant before, WaitVariant after) {
    return replays[before].stages[slowest].end_seconds - replays[after].stages[slowest].end_seconds;
  };
  time.exposed_communication_seconds.data += exposed_reduce + saved(kAllWaits, kDataRanksReady);
  time.exposed_communication_seconds.pipeline += saved(kDataRanksReady, kTransfersFree);
  const double bubble = replays[kTransfersFree].stages[slowest].idle_seconds() + end_seconds -
                        end_of_step(stages[slowest]) - stages[slowest].first_added.total_seconds();
  constexpr double kRounding = 1e-12;
  time.bubble_seconds = std::abs(bubble) > kRounding * time.iteration_seconds ? bubble : 0;
  return time;
}

}  // namespace estimator
