#include "estimator/program/program_flops.h"

#include <algorithm>

#include "estimator/compute/compute_time.h"
#include "estimator/profile/product_operators.h"

namespace estimator {
namespace {

/// Query x key is computed again, and has two gradients, as has its product with the values.
constexpr double kGradientsOfFusedAttention = 4.0 / 5;

double model_share(const TraceWork& work, Direction direction) {
  const bool is_fused = direction == Direction::kBackward && work.kind == WorkKind::kKernel &&
                        is_attention(work.operator_name);
  return is_fused ? kGradientsOfFusedAttention : 1;
}

/// As torch.compile's Inductor names its kernels ("triton_poi_fused_add_0").
bool is_of_compiler(const TraceWork& work) {
  return work.kind == WorkKind::kKernel && work.name.starts_with("triton_");
}

}  // namespace

ProgramFlops program_flops(const RankProfile& profile) {
  const Trace& trace = *profile.trace;
  ProgramFlops flops;
  double forward = 0, backward = 0, largest = 0;
  bool is_compiled = false;
  for (const TraceLaunch& launch : trace.launches()) {
    const TraceWork& work = trace.work_of(launch);
    const auto direction = static_cast<Direction>(launch.direction);
    flops.executed += work.flops;
    is_compiled = is_compiled || is_of_compiler(work);
    if (direction == Direction::kForward && !launch.is_evaluation) {
      forward += work.flops;
      largest = std::max(largest, work.flops);
    }
    if (direction == Direction::kBackward) backward += work.flops * model_share(work, direction);
  }
  constexpr double kAllGradients = 2, kNearly = 0.99;
  const double most = trace.differentiates_backward ? backward : kAllGradients * forward;
  flops.model = forward + std::min(backward, most);
  flops.is_model_known = !is_compiled || backward + largest >= kNearly * kAllGradients * forward;
  return flops;
}

}  // namespace estimator
