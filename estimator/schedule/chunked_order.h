// Parts of the schedules that work on groups of micro-batches. Only the sources in this folder that
// make or fold schedules include this; other code includes pipeline_schedule.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "estimator/schedule/pipeline_schedule.h"

namespace estimator {

/// The order in which (micro-batch, chunk) pairs go forward or backward. One group of micro-batches
/// after the other goes through all chunks; forward begins with the first chunk, backward with the
/// last.
class ChunkedOrder {
 public:
  enum class Way { kForward, kBackward };
  ChunkedOrder(const ScheduleShape& shape, Way way);

  /// The next pair, as a step of `kind`. It is inline because it takes half of the time to make a
  /// schedule.
  PipelineStep next(StepKind kind);

 private:
  int64_t micro_batches_, chunks_, group_;
  Way way_;
  int64_t group_begin_ = 0, chunk_ = 0, in_group_ = 0;
};

inline PipelineStep ChunkedOrder::next(StepKind kind) {
  const int64_t chunk = way_ == Way::kForward ? chunk_ : chunks_ - 1 - chunk_;
  const PipelineStep step{.kind = kind,
                          .micro_batch = static_cast<int32_t>(group_begin_ + in_group_),
                          .chunk = static_cast<int32_t>(chunk)};
  if (++in_group_ == std::min(group_, micro_batches_ - group_begin_)) {
    in_group_ = 0;
    if (++chunk_ == chunks_) {
      chunk_ = 0;
      group_begin_ += group_;
    }
  }
  return step;
}

}  // namespace estimator
