#include "estimator/pipeline_schedule.h"

#include <algorithm>
#include <stdexcept>

namespace estimator {
namespace {

int64_t warm_up_forwards(const ScheduleShape& shape, int64_t stage) {
  switch (shape.kind) {
    case ScheduleKind::kGpipe:
      return shape.micro_batches;
    case ScheduleKind::kOneForwardOneBackward:
      return std::min(shape.micro_batches, shape.stages - stage - 1);
  }
  throw std::logic_error("unknown pipeline schedule");
}

}  // namespace

std::vector<PipelineStep> stage_steps(const ScheduleShape& shape, int64_t stage) {
  const int64_t warm_up = warm_up_forwards(shape, stage);
  std::vector<PipelineStep> steps;
  steps.reserve(static_cast<std::size_t>(2 * shape.micro_batches));
  for (int64_t i = 0; i < warm_up; ++i) steps.push_back({StepKind::kForward, i});
  for (int64_t i = warm_up; i < shape.micro_batches; ++i) {
    steps.push_back({StepKind::kForward, i});
    steps.push_back({StepKind::kBackward, i - warm_up});
  }
  for (int64_t i = shape.micro_batches - warm_up; i < shape.micro_batches; ++i) {
    steps.push_back({StepKind::kBackward, i});
  }
  return steps;
}

int64_t micro_batches_in_flight(const ScheduleShape& shape, int64_t stage) {
  return std::min(shape.micro_batches, warm_up_forwards(shape, stage) + 1);
}

int64_t micro_batches_to_execute(const ScheduleShape& shape, int64_t stage) {
  return std::min(shape.micro_batches, micro_batches_in_flight(shape, stage) + 2);
}

}  // namespace estimator
