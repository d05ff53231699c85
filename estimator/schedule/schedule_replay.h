// Replays a pipeline schedule over all stages, event by event.
//
// A stage does its steps in order. A forward waits for the activations of the piece of the model
// before, a backward (its first part, when it has two) for the gradients of the piece after; each
// arrives a transfer time after the step that made it ended. With overlapped sends the sender goes
// on at once (sends run on the network library's own stream); otherwise it waits for the transfer
// to end. Links carry one stage boundary each, so transfers do not queue.
#pragma once

#include <array>
#include <vector>

#include "estimator/schedule/pipeline_schedule.h"

namespace estimator {

/// What one micro-batch takes in one chunk of one stage, in seconds.
struct ChunkDuration {
  double forward_seconds = 0;
  double backward_seconds = 0;         ///< both parts, with recompute
  double backward_weight_seconds = 0;  ///< of it, the part for the weights' gradients
  double send_forward_seconds = 0;     ///< activations to the next piece
  double send_backward_seconds = 0;    ///< gradients to the piece before
  /// The chunk's first forward starts no earlier: its parameters are still on their way.
  double parameters_ready_seconds = 0;
  /// What the chunk's last backward takes longer than the others, and the send after it: its
  /// gradients are being reduced beside them.
  double last_backward_added_seconds = 0;
  double last_send_added_seconds = 0;
};

struct StageReplay {
  double end_seconds = 0;   ///< when its last step ends; the replay starts at 0
  double busy_seconds = 0;  ///< in forward and backward steps

  double idle_seconds() const { return end_seconds - busy_seconds; }
};

struct ReplayOptions {
  bool overlap_sends = true;
  bool keep_starts = false;  ///< fill ScheduleReplay::start_seconds
};

struct ScheduleReplay {
  std::vector<StageReplay> stages;
  /// When each chunk has all its gradients, stage x chunks + chunk.
  std::vector<double> gradients_ready_seconds;
  /// When each step of the schedule started, in its order; empty unless asked for.
  std::vector<double> start_seconds;

  /// When the last stage to finish has finished.
  double end_seconds() const;
};

/// `durations` has one entry for each chunk of each stage, stage x chunks + chunk. Takes O(steps).
/// Throws std::logic_error when sizes differ or the schedule waits for itself.
ScheduleReplay replay_schedule(const PipelineSchedule& schedule,
                               const std::vector<ChunkDuration>& durations,
                               const ReplayOptions& options = {});

inline constexpr std::size_t kVariants = 3;
using DurationVariants = std::array<std::vector<ChunkDuration>, kVariants>;

/// Each variant replayed. Which step follows which is no matter of time, so one pass works all of
/// them out, at little more than the cost of one.
std::array<ScheduleReplay, kVariants> replay_variants(const PipelineSchedule& schedule,
                                                      const DurationVariants& variants,
                                                      bool overlap_sends);

/// Whether a step is the last before the reduction of all gradients of its chunk.
constexpr bool completes_gradients(const PipelineStep& step, const ScheduleShape& shape) {
  const bool makes_gradients =
      step.kind == StepKind::kBackward || step.kind == StepKind::kBackwardWeight;
  return makes_gradients && step.micro_batch + 1 == shape.micro_batches;
}

/// How long a step of `kind` takes.
double step_seconds(const ChunkDuration& duration, StepKind kind);

}  // namespace estimator
