#include "estimator/step/step_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "estimator/communication/communication_time.h"
#include "estimator/plan/frameworks.h"
#include "estimator/schedule/folded_replay.h"
#include "estimator/step/axis_seconds.h"

namespace estimator {
namespace {

using Durations = std::vector<ChunkDuration>;

/// What one stage sends to another; as long as in the pipeline where the two are farthest apart.
struct Transfer {
  int64_t bytes = 0;
  int64_t from_stage = 0, to_stage = 0;

  double seconds(const RankSpan& pipeline, const Fabric& fabric) const {
    if (bytes == 0 || from_stage == to_stage) return 0;
    return send_seconds(bytes, farthest_pair(pipeline, from_stage, to_stage, fabric), fabric);
  }
};

/// When each chunk of a stage can start forward.
void add_parameter_waits(const StageTime& stage, ChunkDuration* durations) {
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    const GatherTime& gathers = stage.chunks[c].gathers;
    if (gathers.seconds == 0) continue;
    if (stage.gathers_begin_with_step) {
      durations[c].parameters_ready_seconds =
          std::max(0.0, stage.gathers_begin_seconds(c) + gathers.added_seconds);
    } else {
      durations[c].parameters_wait_seconds = gathers.added_seconds;
    }
  }
  durations[0].parameters_ready_seconds += stage.first_added.total_seconds();
}

/// Forwards and backwards that run together, and those that do not.
PartTime combined_work(const StageTime& stage, const ScheduleShape& shape, int64_t number) {
  const std::vector<PipelineStep> steps = stage_steps(shape, number);
  PartTime work;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const ChunkTime& chunk = stage.chunks[static_cast<std::size_t>(steps[i].chunk)];
    if (is_combined(shape, number, steps, i)) {
      add(work, chunk.pairs.at(steps[++i].chunk));
    } else {
      add(work, steps[i].kind == StepKind::kForward ? chunk.forward : chunk.backward);
    }
  }
  return work;
}

/// All forwards and backwards of a step.
PartTime work_of(const StageTime& stage, const ScheduleShape& shape, int64_t number) {
  if (shape.combines_pairs) return combined_work(stage, shape, number);
  const auto micro_batches = static_cast<double>(shape.micro_batches);
  PartTime work;
  add(work, stage.forward(), micro_batches);
  add(work, stage.backward(), micro_batches);
  return work;
}

/// The parts of a stage's step but for its waiting.
StepTime working_time(const StageTime& stage, const ScheduleShape& shape, int64_t number) {
  const PartTime work = work_of(stage, shape, number);
  StepTime time;
  time.compute_seconds = work.compute_seconds;
  time.optimizer_seconds = stage.step_end.compute_seconds;
  time.offload = stage.offload;
  ExposedCommunication& exposed = time.exposed_communication_seconds;
  add(exposed, work.communication_seconds);
  add(exposed, stage.step_end.communication_seconds);
  time.compute_seconds += stage.first_added.compute_seconds;
  add(exposed, stage.first_added.communication_seconds);
  exposed.data += stage.gather_seconds;
  return time;
}

std::vector<double> pair_seconds(const ChunkTime& chunk, int64_t chunks) {
  std::vector<double> seconds;
  if (chunk.pairs.empty()) return seconds;
  seconds.resize(static_cast<std::size_t>(chunks));
  for (const auto& [backward, pair] : chunk.pairs) {
    seconds[static_cast<std::size_t>(backward)] = pair.total_seconds();
  }
  return seconds;
}

/// What the stages wait for, taken away one after the other.
enum WaitVariant : std::size_t { kAllWaits, kDataRanksReady, kTransfersFree };

std::array<ScheduleReplay, kVariants> replay_without_waits(const ScheduleShape& shape,
                                                           const Durations& durations,
                                                           const std::vector<StageTime>& stages,
                                                           const ReplayOptions& options) {
  DurationVariants variants;
  variants[kAllWaits] = durations;
  variants[kDataRanksReady] = durations;
  for (ChunkDuration& duration : variants[kDataRanksReady]) {
    duration.parameters_ready_seconds = duration.parameters_wait_seconds = 0;
    duration.last_backward_added_seconds = 0;
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    variants[kDataRanksReady][s * stages[s].chunks.size()].parameters_ready_seconds =
        stages[s].first_added.total_seconds();
  }
  variants[kTransfersFree] = variants[kDataRanksReady];
  for (ChunkDuration& duration : variants[kTransfersFree]) {
    duration.send_forward_seconds = duration.send_backward_seconds = 0;
  }
  return replay_shape(shape, variants, options);
}

}  // namespace

bool overlaps_sends(const Plan& plan) {
  if (plan.time.launch_blocking) return false;
  if (plan.parallelism.virtual_stages > 1) return plan.parallelism.overlap_p2p_communication;
  return traits_of(plan.training.framework).overlapped_sends;
}

std::vector<ChunkDuration> chunk_durations(const ScheduleShape& shape,
                                           const std::vector<StageTime>& stages,
                                           const ParallelLayout& layout,
                                           const Fabric& fabric) {
  Durations durations;
  durations.reserve(static_cast<std::size_t>(shape.virtual_stages()));
  const int64_t last_piece = shape.virtual_stages() - 1;
  const RankSpan pipeline = layout.group(GroupKind::kPipeline, 0).spans.front();
  for (int64_t s = 0; s < shape.stages; ++s) {
    const StageTime& stage = stages[static_cast<std::size_t>(s)];
    const auto send_seconds_to = [&](int64_t to_piece, int64_t bytes) {
      return Transfer{bytes, s, stage_of(shape, to_piece)}.seconds(pipeline, fabric);
    };
    for (int64_t c = 0; c < shape.chunks; ++c) {
      const ChunkTime& chunk = stage.chunks[static_cast<std::size_t>(c)];
      const int64_t piece = virtual_stage(shape, s, c);
      ChunkDuration duration{.forward_seconds = chunk.forward.total_seconds(),
                             .backward_seconds = chunk.backward.total_seconds(),
                             .last_backward_added_seconds = chunk.reduction.backward_added_seconds,
                             .pair_seconds = pair_seconds(chunk, shape.chunks)};
      if (piece < last_piece) {
        duration.send_forward_seconds = send_seconds_to(piece + 1, stage.send_forward_bytes);
      }
      if (piece > 0) {
        duration.send_backward_seconds = send_seconds_to(piece - 1, stage.send_backward_bytes);
      }
      durations.push_back(duration);
    }
    add_parameter_waits(stage, &durations[static_cast<std::size_t>(s * shape.chunks)]);
  }
  return durations;
}

GradientReduction reduce_gradients(const StageTime& stage,
                                   const double* gradients_ready,
                                   double end_seconds) {
  std::vector<std::size_t> order(stage.chunks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return gradients_ready[a] < gradients_ready[b];
  });
  GradientReduction reduction;
  double free_seconds = 0, slowed_seconds = 0;
  const auto add_calls = [&](std::size_t c, double seconds) {
    if (seconds == 0) return;
    reduction.calls.push_back({static_cast<int64_t>(c), free_seconds - seconds, free_seconds});
  };
  for (const std::size_t c : order) {
    const ReductionTime& reduce = stage.chunks[c].reduction;
    if (reduce.beside_seconds == 0) continue;
    free_seconds =
        std::max(gradients_ready[c] + reduce.left_seconds, free_seconds + reduce.beside_seconds);
    add_calls(c, reduce.beside_seconds);
    const double left = free_seconds - gradients_ready[c];
    const double beside = std::clamp(end_seconds - gradients_ready[c], 0.0, left);
    if (left > 0) slowed_seconds += reduce.next_added_seconds * beside / left;
  }
  free_seconds = std::max(end_seconds, free_seconds) + slowed_seconds;
  for (const std::size_t c : order) {
    free_seconds += stage.chunks[c].reduction.end_seconds;
    add_calls(c, stage.chunks[c].reduction.end_seconds);
  }
  reduction.ready_seconds = free_seconds;
  return reduction;
}

double end_of_step(const StageTime& stage) {
  return stage.step_end.total_seconds() + stage.gather_seconds;
}

/// What follows the stage's last backward until its optimizer can step.
void add_exposed_reduction(const StageTime& stage, double seconds, StepTime& time) {
  const bool communicates =
      std::any_of(stage.chunks.begin(), stage.chunks.end(), [](const ChunkTime& chunk) {
        return chunk.reduction.communicates;
      });
  (communicates ? time.exposed_communication_seconds.data : time.compute_seconds) += seconds;
}

double data_loading_wait(const Plan& plan, double step_seconds) {
  const double loading = plan.time.data_loading_seconds * static_cast<double>(plan.micro_batches());
  return std::max(0.0, loading - step_seconds);
}

/// When the micro-batches of a stage end, and when its gradients are reduced after them.
struct StageEnd {
  double steps_seconds = 0, ready_seconds = 0;

  double exposed_reduction() const { return ready_seconds - steps_seconds; }
};

std::vector<StageEnd> stage_ends(const ScheduleReplay& replay,
                                 const std::vector<StageTime>& stages) {
  std::vector<StageEnd> ends;
  ends.reserve(stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const double end = replay.stages[s].end_seconds;
    const double* ready = &replay.gradients_ready_seconds[s * stages[s].chunks.size()];
    ends.push_back({end, reduce_gradients(stages[s], ready, end).ready_seconds});
  }
  return ends;
}

std::size_t last_ready(const std::vector<StageEnd>& ends) {
  const auto last = std::max_element(ends.begin(), ends.end(), [](const auto& a, const auto& b) {
    return a.ready_seconds < b.ready_seconds;
  });
  return static_cast<std::size_t>(last - ends.begin());
}

/// The stage that waits least; of equal ones that which is ready last.
std::size_t busiest_stage(const ScheduleReplay& without_waits,
                          const std::vector<StageTime>& stages,
                          const std::vector<StageEnd>& ends) {
  const auto busy_seconds = [&](std::size_t s) {
    return without_waits.stages[s].busy_seconds + stages[s].first_added.total_seconds() +
           ends[s].exposed_reduction() + end_of_step(stages[s]);
  };
  constexpr double kRounding = 1e-9;
  std::size_t busiest = last_ready(ends);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (busy_seconds(s) > busy_seconds(busiest) * (1 + kRounding)) busiest = s;
  }
  return busiest;
}

double latest_end_of_step(const std::vector<StageTime>& stages) {
  double latest = 0;
  for (const StageTime& stage : stages) latest = std::max(latest, end_of_step(stage));
  return latest;
}

/// The waits of each stage that are so long, also that at its end for the last one to be ready.
std::vector<double> long_waits(const ScheduleReplay& replay,
                               const std::vector<StageEnd>& ends,
                               double ready_seconds,
                               double long_wait) {
  std::vector<double> waits;
  waits.reserve(ends.size());
  for (std::size_t s = 0; s < ends.size(); ++s) {
    const double at_end = ready_seconds - ends[s].ready_seconds;
    waits.push_back(replay.stages[s].long_wait_seconds + (at_end >= long_wait ? at_end : 0));
  }
  return waits;
}

PlayedStep play_step(const Plan& plan,
                     const ParallelLayout& layout,
                     const Fabric& fabric,
                     const std::vector<StageTime>& stages,
                     double long_wait) {
  const ScheduleShape shape = schedule_shape(plan);
  const Durations durations = chunk_durations(shape, stages, layout, fabric);
  const auto replays =
      replay_without_waits(shape,
                           durations,
                           stages,
                           {.overlap_sends = overlaps_sends(plan), .long_wait_seconds = long_wait});
  const ScheduleReplay& replay = replays[kAllWaits];
  const std::vector<StageEnd> ends = stage_ends(replay, stages);
  const std::size_t busiest = busiest_stage(replays[kTransfersFree], stages, ends);
  const StageEnd& end = ends[busiest];
  const double ready_seconds = ends[last_ready(ends)].ready_seconds;
  const double end_seconds = latest_end_of_step(stages);

  StepTime time = working_time(stages[busiest], shape, static_cast<int64_t>(busiest));
  time.stage = static_cast<int64_t>(busiest);
  const double step_seconds = ready_seconds + end_seconds;
  time.data_loading_seconds = data_loading_wait(plan, step_seconds);
  time.iteration_seconds = step_seconds + time.data_loading_seconds;
  const auto saved = [&](WaitVariant before, WaitVariant after) {
    return replays[before].stages[busiest].end_seconds - replays[after].stages[busiest].end_seconds;
  };
  /// Of two sums that may be equal but for rounding.
  const auto difference = [&](double seconds) {
    constexpr double kRounding = 1e-12;
    return std::abs(seconds) > kRounding * time.iteration_seconds ? seconds : 0;
  };
  add_exposed_reduction(stages[busiest], difference(end.exposed_reduction()), time);
  time.exposed_communication_seconds.data += difference(saved(kAllWaits, kDataRanksReady));
  time.exposed_communication_seconds.pipeline += difference(saved(kDataRanksReady, kTransfersFree));
  const double at_end =
      ready_seconds - end.ready_seconds + end_seconds - end_of_step(stages[busiest]);
  time.bubble_seconds = difference(replays[kTransfersFree].stages[busiest].idle_seconds() + at_end -
                                   stages[busiest].first_added.total_seconds());
  return {.time = time, .long_wait_seconds = long_waits(replay, ends, ready_seconds, long_wait)};
}

StepTime step_time(const Plan& plan,
                   const ParallelLayout& layout,
                   const Fabric& fabric,
                   const std::vector<StageTime>& stages) {
  return play_step(plan, layout, fabric, stages, kNoLongWaits).time;
}

}  // namespace estimator
