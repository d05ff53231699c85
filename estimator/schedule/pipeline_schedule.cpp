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

/// All forwards and all backwards of a stage of 1F1B or GPipe, in their order, which is that of
/// every stage.
struct ForwardsAndBackwards {
  explicit ForwardsAndBackwards(const ScheduleShape& shape)
      : forwards(all(shape, ChunkedOrder::Way::kForward, StepKind::kForward)),
        backwards(all(shape, ChunkedOrder::Way::kBackward, StepKind::kBackward)) {}

  std::vector<PipelineStep> forwards, backwards;

 private:
  static std::vector<PipelineStep> all(const ScheduleShape& shape,
                                       ChunkedOrder::Way way,
                                       StepKind kind) {
    std::vector<PipelineStep> steps(static_cast<std::size_t>(shape.micro_batches * shape.chunks));
    ChunkedOrder order(shape, way);
    std::generate(steps.begin(), steps.end(), [&] { return order.next(kind); });
    return steps;
  }
};

/// Those of a stage, by its forwards before the first backward.
void append_steps(const ForwardsAndBackwards& all,
                  int64_t warm_up,
                  std::vector<PipelineStep>& steps) {
  const auto first_pair = all.forwards.begin() + warm_up;
  steps.insert(steps.end(), all.forwards.begin(), first_pair);
  auto backward = all.backwards.begin();
  for (auto forward = first_pair; forward != all.forwards.end(); ++forward, ++backward) {
    steps.push_back(*forward);
    steps.push_back(*backward);
  }
  steps.insert(steps.end(), backward, all.backwards.end());
}

bool is_forward_backward(ScheduleKind kind) {
  return kind == ScheduleKind::kGpipe || kind == ScheduleKind::kOneForwardOneBackward;
}

std::vector<PipelineStep> forward_backward_steps(const ScheduleShape& shape, int64_t stage) {
  std::vector<PipelineStep> steps;
  append_steps(ForwardsAndBackwards(shape), warm_up_forwards(shape, stage), steps);
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

namespace {

/// What steps_of_stage(stage, steps) appends for each stage.
template <class StepsOfStage>
PipelineSchedule schedule_of(const ScheduleShape& shape, const StepsOfStage& append_steps_of) {
  PipelineSchedule schedule{.shape = shape, .steps = {}, .first_step = {0}};
  for (int64_t stage = 0; stage < shape.stages; ++stage) {
    append_steps_of(stage, schedule.steps);
    if (stage == 0) {
      schedule.steps.reserve(schedule.steps.size() * static_cast<std::size_t>(shape.stages));
    }
    schedule.first_step.push_back(schedule.steps.size());
  }
  return schedule;
}

}  // namespace

PipelineSchedule make_schedule(const ScheduleShape& shape) {
  if (!is_forward_backward(shape.kind)) {
    return schedule_of(shape, [&](int64_t stage, std::vector<PipelineStep>& steps) {
      const std::vector<PipelineStep> own = stage_steps(shape, stage);
      steps.insert(steps.end(), own.begin(), own.end());
    });
  }
  check(shape);
  const ForwardsAndBackwards all(shape);
  return schedule_of(shape, [&](int64_t stage, std::vector<PipelineStep>& steps) {
    append_steps(all, warm_up_forwards(shape, stage), steps);
  });
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
