// Replays a pipeline schedule over all stages, event by event.
//
// A stage does its steps in order. A forward waits for the activations from the piece of the model
// before it, and a backward (its first part, if it has two) for the gradients from the piece after
// it. They arrive one transfer time after the end of the step that made them. With overlapped sends
// the sender goes on at once (sends run on a stream of the network library); otherwise it waits
// until the transfer has ended. Each boundary between stages has a link of its own, so transfers do
// not queue. A forward and a backward that are combined wait for both, and hand on both at their
// end.
#pragma once

#include <array>
#include <limits>
#include <vector>

#include "estimator/schedule/pipeline_schedule.h"

namespace estimator {

/// The time of one micro-batch in one chunk of one stage, in seconds.
struct ChunkDuration {
  double forward_seconds = 0;
  double backward_seconds = 0;         ///< both parts, with recompute
  double backward_weight_seconds = 0;  ///< the part of backward_seconds for the weights' gradients
  double send_forward_seconds = 0;     ///< activations to the next piece
  double send_backward_seconds = 0;    ///< gradients to the piece before
  /// The earliest start of the chunk's first forward, whose parameters are being gathered since 0.
  double parameters_ready_seconds = 0;
  /// How long its first forward waits for its parameters when their gathers begin with its input.
  double parameters_wait_seconds = 0;
  /// How much longer the chunk's last backward takes than the others, because gradients are reduced
  /// at the same time.
  double last_backward_added_seconds = 0;
  /// Its forward together with the backward of each chunk of its stage, where pairs are combined.
  std::vector<double> pair_seconds = {};
};

struct StageReplay {
  double end_seconds = 0;        ///< when its last step ends; the replay starts at 0
  double busy_seconds = 0;       ///< in forward and backward steps
  double long_wait_seconds = 0;  ///< of its waits for inputs, those that are long

  double idle_seconds() const { return end_seconds - busy_seconds; }
};

inline constexpr double kNoLongWaits = std::numeric_limits<double>::infinity();

struct ReplayOptions {
  bool overlap_sends = true;
  bool keep_starts = false;                 ///< fill ScheduleReplay::start_seconds
  double long_wait_seconds = kNoLongWaits;  ///< from which on a wait is long
};

struct ScheduleReplay {
  std::vector<StageReplay> stages;
  /// When each chunk has all its gradients; the index is stage x chunks + chunk.
  std::vector<double> gradients_ready_seconds;
  /// When each step started, in the order of the schedule; empty unless keep_starts is set.
  std::vector<double> start_seconds;

  /// When the last stage has finished.
  double end_seconds() const;
};

/// `durations` has one entry for each chunk of each stage, at the index stage x chunks + chunk.
/// Takes O(steps). Throws std::logic_error when the sizes differ or the schedule waits for itself.
ScheduleReplay replay_schedule(const PipelineSchedule& schedule,
                               const std::vector<ChunkDuration>& durations,
                               const ReplayOptions& options = {});

inline constexpr std::size_t kVariants = 3;
using DurationVariants = std::array<std::vector<ChunkDuration>, kVariants>;

/// Replays several variants of the durations. The order of the steps does not depend on the
/// durations, so one pass replays all variants and costs little more than a single replay. Long
/// waits are those of the first variant.
std::array<ScheduleReplay, kVariants> replay_variants(const PipelineSchedule& schedule,
                                                      const DurationVariants& variants,
                                                      const ReplayOptions& options);

/// Whether the step is the last one that adds to the gradients of its chunk, which can then be
/// reduced.
constexpr bool completes_gradients(const PipelineStep& step, const ScheduleShape& shape) {
  const bool makes_gradients =
      step.kind == StepKind::kBackward || step.kind == StepKind::kBackwardWeight;
  return makes_gradients && step.micro_batch + 1 == shape.micro_batches;
}

/// How long a step of `kind` takes.
double step_seconds(const ChunkDuration& duration, StepKind kind);

}  // namespace estimator
