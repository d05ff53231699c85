// Replays a pipeline schedule over all stages, event by event.
//
// A stage does its steps in order (stage_steps). A forward waits for the activations of the stage
// before, a backward for the gradients of the stage after; each arrives a transfer time after
// the step that made it ended. The sender goes on at once (sends run on the network library's own
// stream); the receiver waits. Links carry one stage boundary each, so transfers do not queue.
#pragma once

#include <vector>

#include "estimator/pipeline_schedule.h"

namespace estimator {

/// What one micro-batch takes on one stage, in seconds.
struct StageDuration {
  double forward_seconds = 0;
  double backward_seconds = 0;       ///< with recompute
  double send_forward_seconds = 0;   ///< activations to the next stage
  double send_backward_seconds = 0;  ///< gradients to the stage before
};

struct StageReplay {
  double end_seconds = 0;   ///< when its last step ends; the replay starts at 0
  double busy_seconds = 0;  ///< in forward and backward steps

  double idle_seconds() const { return end_seconds - busy_seconds; }
};

struct ScheduleReplay {
  std::vector<StageReplay> stages;

  /// When the last stage to finish has finished.
  double end_seconds() const;
};

/// `durations` has one entry for each stage. Takes O(stages x micro-batches).
/// Throws std::logic_error when sizes differ or the schedule waits for itself.
ScheduleReplay replay_schedule(const ScheduleShape& shape,
                               const std::vector<StageDuration>& durations);

}  // namespace estimator
