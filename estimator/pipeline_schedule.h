// A pipeline schedule is data: what one stage does, in order. The shard executes the list of its
// stage, so the number of activations it holds is real; the estimator times the lists of all
// stages.
//
// Orders: GPipe (Huang et al. 2019): all forwards, then all backwards. 1F1B (Narayanan et al. 2021,
// PipeDream-Flush): min(m, p - r - 1) warm-up forwards, then a forward and a backward in turn, then
// the remaining backwards.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/plan.h"

namespace estimator {

enum class StepKind { kForward, kBackward };

struct PipelineStep {
  StepKind kind = StepKind::kForward;
  int64_t micro_batch = 0;
  bool operator==(const PipelineStep&) const = default;
};

struct ScheduleShape {
  ScheduleKind kind = ScheduleKind::kOneForwardOneBackward;
  int64_t stages = 1;
  int64_t micro_batches = 1;
};

/// The steps of `stage` (0 <= stage < stages).
std::vector<PipelineStep> stage_steps(const ScheduleShape& shape, int64_t stage);

/// Micro-batches whose activations `stage` holds at once, at most: GPipe m, 1F1B min(m, p - r).
int64_t micro_batches_in_flight(const ScheduleShape& shape, int64_t stage);

/// How many micro-batches of the plan a rank needs to run to reach its peak: those in flight and
/// two.
int64_t micro_batches_to_execute(const ScheduleShape& shape, int64_t stage);

}  // namespace estimator
