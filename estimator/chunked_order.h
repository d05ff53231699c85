// What the schedules with groups of micro-batches are made of. For pipeline_schedule.cpp, whose
// header is the one to include.
#pragma once

#include <cstdint>

#include "estimator/pipeline_schedule.h"

namespace estimator {

/// The order in which (micro-batch, chunk) pairs go forward, or backward: groups of micro-batches,
/// each through all chunks, the first chunk first or last.
class ChunkedOrder {
 public:
  enum class Way { kForward, kBackward };
  ChunkedOrder(const ScheduleShape& shape, Way way);

  /// The next pair as a step of `kind`.
  PipelineStep next(StepKind kind);

 private:
  int64_t micro_batches_, chunks_, group_;
  Way way_;
  int64_t group_begin_ = 0, chunk_ = 0, in_group_ = 0;
};

/// Forwards of `stage` before its first backward; only of schedules that are a warm-up and pairs.
int64_t warm_up_forwards(const ScheduleShape& shape, int64_t stage);

}  // namespace estimator
