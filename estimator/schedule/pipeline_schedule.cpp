#include "estimator/schedule/pipeline_schedule.h"

#include <algorithm>
#include <stdexcept>

#include "estimator/base/units.h"
#include "estimator/schedule/chunked_order.h"
#include "estimator/schedule/zero_bubble_schedules.h"

namespace estimator {
namespace {

bool is_v_shaped(ScheduleKind kind) {
  return kind == ScheduleKind::kZeroBubbleV || kind == ScheduleKind::kDualPipeV;
}

void require(bool holds, const char* broken_promise) {
  if (!holds) throw std::logic_error(broken_promise);
}

void check(const ScheduleShape& shape) {
  require(shape.stages > 0 && shape.chunks > 0 && shape.micro_batches >= 0,
          "a schedule of no stages or chunks");
  require(!is_v_shaped(shape.kind) || shape.chunks == 2, "a V has two chunks on each stage");
  require(shape.kind != ScheduleKind::kDualPipeV || shape.micro_batches >= 2 * shape.stages,
          "DualPipeV needs two micro-batches for each stage");
  require(shape.kind != ScheduleKind::kGpipe || shape.chunks == 1, "GPipe has one chunk");
  require(shape.chunks == 1 || shape.group() >= shape.stages,
          "a group has at least as many micro-batches as there are stages");
}

/// 1F1B and GPipe, by their forwards before the first backward.
std::vector<PipelineStep> forward_backward_steps(const ScheduleShape& shape, int64_t stage) {
  const int64_t forwards = shape.micro_batches * shape.chunks;
  const int64_t warm_up = warm_up_forwards(shape, stage);
  std::vector<PipelineStep> steps;
  steps.reserve(static_cast<std::size_t>(2 * forwards));
  ChunkedOrder forward(shape, ChunkedOrder::Way::kForward);
  ChunkedOrder backward(shape, ChunkedOrder::Way::kBackward);
  for (int64_t i = 0; i < warm_up; ++i) steps.push_back(forward.next(StepKind::kForward));
  for (int64_t i = warm_up; i < forwards; ++i) {
    steps.push_back(forward.next(StepKind::kForward));
    steps.push_back(backward.next(StepKind::kBackward));
  }
  for (int64_t i = 0; i < warm_up; ++i) steps.push_back(backward.next(StepKind::kBackward));
  return steps;
}

int64_t counted_in_flight(const ScheduleShape& shape, int64_t stage) {
  int64_t held = 0, most = 0;
  for (const PipelineStep& step : stage_steps(shape, stage)) {
    if (step.kind == StepKind::kForward) most = std::max(most, ++held);
    if (step.kind == StepKind::kBackward || step.kind == StepKind::kBackwardInput) --held;
  }
  return most;
}

/// PyTorch's interleaved schedule has as many rounds as the micro-batches have stages in them
/// (ScheduleInterleaved1F1B in torch/distributed/pipelining/schedules.py).
int64_t group_size(const Plan& plan) {
  const ParallelConfig& p = plan.parallelism;
  if (!plan.torch_pipeline()) return p.microbatch_group_size_per_virtual_stage.value_or(0);
  const int64_t micro_batches = plan.micro_batches();
  return micro_batches / std::max<int64_t>(1, micro_batches / p.pipeline);
}

}  // namespace

ScheduleShape schedule_shape(const Plan& plan) {
  const ParallelConfig& p = plan.parallelism;
  return {.kind = p.pipeline_schedule,
          .stages = p.pipeline,
          .micro_batches = plan.micro_batches(),
          .chunks = p.virtual_stages,
          .group_size = group_size(plan),
          .last_stage_defers = p.defer_embedding_wgrad_compute,
          .combines_pairs = p.overlap_moe_expert_parallel_comm};
}

int64_t virtual_stage(const ScheduleShape& shape, int64_t stage, int64_t chunk) {
  if (is_v_shaped(shape.kind) && chunk == 1) return shape.virtual_stages() - 1 - stage;
  return chunk * shape.stages + stage;
}

int64_t stage_of(const ScheduleShape& shape, int64_t virtual_stage) {
  const int64_t place = virtual_stage % shape.stages;
  const bool way_back = is_v_shaped(shape.kind) && virtual_stage >= shape.stages;
  return way_back ? shape.stages - 1 - place : place;
}

std::vector<PipelineStep> stage_steps(const ScheduleShape& shape, int64_t stage) {
  check(shape);
  switch (shape.kind) {
    case ScheduleKind::kGpipe:
    case ScheduleKind::kOneForwardOneBackward:
      return forward_backward_steps(shape, stage);
    case ScheduleKind::kZeroBubbleH1:
      return zero_bubble_h1_steps(shape, stage);
    case ScheduleKind::kZeroBubbleV:
      return zero_bubble_v_steps(shape, stage);
    case ScheduleKind::kDualPipeV:
      return dual_pipe_v_steps(shape, stage);
  }
  throw std::logic_error("unknown pipeline schedule");
}

bool is_combined(const ScheduleShape& shape,
                 int64_t stage,
                 std::span<const PipelineStep> steps,
                 std::size_t i) {
  return shape.combines_pairs && steps[i].kind == StepKind::kForward &&
         static_cast<int64_t>(i) >= warm_up_forwards(shape, stage);
}

std::span<const PipelineStep> PipelineSchedule::steps_of(int64_t stage) const {
  const auto s = static_cast<std::size_t>(stage);
  return std::span(steps).subspan(first_step[s], first_step[s + 1] - first_step[s]);
}

PipelineSchedule make_schedule(const ScheduleShape& shape) {
  PipelineSchedule schedule{.shape = shape, .steps = {}, .first_step = {0}};
  for (int64_t stage = 0; stage < shape.stages; ++stage) {
    const std::vector<PipelineStep> steps = stage_steps(shape, stage);
    if (stage == 0) schedule.steps.reserve(steps.size() * static_cast<std::size_t>(shape.stages));
    schedule.steps.insert(schedule.steps.end(), steps.begin(), steps.end());
    schedule.first_step.push_back(schedule.steps.size());
  }
  return schedule;
}

int64_t forwards_in_flight(const ScheduleShape& shape, int64_t stage) {
  if (is_v_shaped(shape.kind)) return counted_in_flight(shape, stage);
  return std::min(shape.micro_batches * shape.chunks, warm_up_forwards(shape, stage) + 1);
}

int64_t micro_batches_to_execute(const ScheduleShape& shape, int64_t stage) {
  const bool defers = shape.last_stage_defers && stage == shape.stages - 1;
  if (is_v_shaped(shape.kind) || defers) return shape.micro_batches;
  if (shape.chunks == 1) {
    return std::min(shape.micro_batches, forwards_in_flight(shape, stage) + 2);
  }
  const int64_t of_a_group = shape.group() * shape.chunks;
  const int64_t groups = divide_up(warm_up_forwards(shape, stage) + of_a_group, of_a_group);
  const int64_t last_group = shape.micro_batches % shape.group();  // 0: all are whole
  return std::min(shape.micro_batches, groups * shape.group() + last_group);
}

}  // namespace estimator
