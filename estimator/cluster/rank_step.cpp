#include "estimator/cluster/rank_step.h"

#include <algorithm>
#include <cmath>

namespace estimator {
namespace {

/// Each point holds until the next; the last until the end, and from the beginning to the first.
std::optional<int64_t> mean_allocated(const StageTimeline& stage, double step_seconds) {
  if (stage.memory.empty() || !(step_seconds > 0)) return std::nullopt;
  double byte_seconds =
      static_cast<double>(stage.memory.back().bytes) * stage.memory.front().seconds;
  for (std::size_t i = 0; i < stage.memory.size(); ++i) {
    const bool is_last = i + 1 == stage.memory.size();
    const double until = is_last ? step_seconds : stage.memory[i + 1].seconds;
    const double seconds = std::max(0.0, until - stage.memory[i].seconds);
    byte_seconds += static_cast<double>(stage.memory[i].bytes) * seconds;
  }
  return std::llround(byte_seconds / step_seconds);
}

double over(double value, double by) { return by > 0 ? value / by : 0; }

}  // namespace

RankStep rank_step(const Plan& plan,
                   const RankClassEstimate& rank,
                   const RankProfile& profile,
                   const StepTimeline& timeline,
                   double step_seconds) {
  RankStep step{.rank = rank.representative_rank};
  for (const OperatorRecord& record : profile.operators) {
    step.flops += static_cast<double>(record.count) * record.flops;
    step.moved_bytes += static_cast<double>(record.count) * record.bytes;
  }
  step.flops_per_byte = over(step.flops, step.moved_bytes);
  step.flops_per_second = over(step.flops, step_seconds);
  step.moved_bytes_per_second = over(step.moved_bytes, step_seconds);
  const int64_t tokens = plan.training.micro_batch_size * plan.sequence_length();
  step.peak_bytes_per_token =
      static_cast<double>(rank.allocated_peak_bytes) / static_cast<double>(tokens);
  for (const StageTimeline& stage : timeline.stages) {
    if (stage.stage != rank.coordinate.pipeline) continue;
    step.mean_allocated_bytes = mean_allocated(stage, timeline.iteration_seconds);
  }
  return step;
}

}  // namespace estimator
