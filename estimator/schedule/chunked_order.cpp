#include "estimator/schedule/chunked_order.h"

#include <algorithm>
#include <stdexcept>

namespace estimator {

int64_t warm_up_forwards(const ScheduleShape& shape, int64_t stage) {
  const int64_t after = shape.stages - stage - 1;
  const int64_t forwards = shape.micro_batches * shape.chunks;
  const int64_t other_chunks = (shape.chunks - 1) * shape.group();
  switch (shape.kind) {
    case ScheduleKind::kGpipe:
      return forwards;
    case ScheduleKind::kOneForwardOneBackward:
      return std::min(
          forwards,
          other_chunks + (shape.chunks > 1 ? 2 : 1) * after + (shape.combines_pairs ? 1 : 0));
    case ScheduleKind::kZeroBubbleH1:
      return std::min(forwards, other_chunks + after);
    case ScheduleKind::kZeroBubbleV:
    case ScheduleKind::kDualPipeV:
      break;
  }
  throw std::logic_error("a schedule that is not made of a warm-up and pairs");
}

ChunkedOrder::ChunkedOrder(const ScheduleShape& shape, Way way)
    : micro_batches_(shape.micro_batches),
      chunks_(shape.chunks),
      // One chunk: the groups follow each other without a trace.
      group_(shape.chunks == 1 ? shape.micro_batches : shape.group()),
      way_(way) {}

}  // namespace estimator
