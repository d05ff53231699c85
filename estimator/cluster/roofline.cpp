#include "estimator/cluster/roofline.h"

#include <algorithm>
#include <stdexcept>

#include "estimator/base/contains.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/cluster/roofline_rows.h"
#include "estimator/communication/communication_time.h"
#include "estimator/compute/kernel_price.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/step/axis_seconds.h"

namespace estimator {
namespace {

std::vector<PricedKernel> priced_kernels(const RankProfile& profile, const ComputeTarget& target) {
  const GpuRates rates = target.rates();
  std::vector<PricedKernel> kernels;
  for (const OperatorRecord& kernel : profile.operators) {
    kernels.push_back({kernel, kernel_price(kernel, rates, target)});
  }
  return kernels;
}

bool is_forward_or_backward(const PricedKernel& kernel) {
  return is_per_micro_batch(kernel.record.direction);
}

/// The kernels' shares of the estimate's compute: what they do not explain is the host's launches,
/// and what kernels lose while NCCL runs beside them.
void split_compute(const std::vector<PricedKernel>& kernels, const StepTime& time, Waits& waits) {
  double explained = 0;
  for (const PricedKernel& kernel : kernels) {
    if (!is_forward_or_backward(kernel)) continue;
    explained += kernel.seconds();
    if (kernel.price.bound == Bound::kCompute) waits.compute += kernel.seconds();
    if (kernel.price.bound == Bound::kMemory) waits.bandwidth += kernel.seconds();
    if (kernel.price.bound == Bound::kLaunch) waits.launch += kernel.seconds();
  }
  if (explained == 0) return;
  const double scale = std::min(1.0, time.compute_seconds / explained);
  waits.compute *= scale;
  waits.bandwidth *= scale;
  waits.launch += time.compute_seconds - waits.compute - waits.bandwidth - waits.launch;
}

/// What the calls of a rank take when they run alone, by axis and by the link that bounds them.
struct CallSeconds {
  ExposedCommunication inside, across;
};

CallSeconds call_seconds(const Plan& plan, const RankProfile& profile, const Fabric& fabric) {
  const ParallelLayout layout(plan.parallelism);
  CallSeconds seconds;
  for (const CollectiveRecord& record : profile.collectives) {
    const CollectiveCall& call = record.call;
    if (call.group_size <= 1) continue;
    const GroupPlacement placement = place(layout.group(call.group, profile.rank), fabric);
    seconds_of_axis(placement.domains() > 1 ? seconds.across : seconds.inside,
                    axis_group(call.group, plan.parallelism)) +=
        static_cast<double>(record.count) * collective_time(call, placement, fabric).seconds;
  }
  return seconds;
}

/// An axis waits for its links in proportion to what its calls take on them.
void split_communication(const ExposedCommunication& exposed,
                         const CallSeconds& calls,
                         Waits& waits) {
  const auto split = [&](double ExposedCommunication::*axis) {
    const double inside = calls.inside.*axis, across = calls.across.*axis;
    const double share = inside + across > 0 ? across / (inside + across) : 0;
    waits.network += share * exposed.*axis;
    waits.nvlink += (1 - share) * exposed.*axis;
  };
  split(&ExposedCommunication::tensor);
  split(&ExposedCommunication::pipeline);
  split(&ExposedCommunication::data);
  split(&ExposedCommunication::context);
  split(&ExposedCommunication::expert);
}

/// Of the class whose parts of the step the estimate tells.
int64_t busiest_rank(const Plan& plan, const StepTime& time) {
  for (const RankClass& c : rank_classes(plan)) {
    if (contains(c.stages, time.stage)) return c.representative_rank;
  }
  throw std::logic_error("the busiest stage is not one of the plan");
}

const RankClassEstimate& class_of_rank(const ClusterEstimate& estimate, int64_t rank) {
  const auto found = std::find_if(
      estimate.rank_classes.begin(), estimate.rank_classes.end(), [&](const RankClassEstimate& c) {
        return c.representative_rank == rank;
      });
  if (found == estimate.rank_classes.end()) throw std::logic_error("the busiest rank was not run");
  return *found;
}

const RankProfile& profile_of_stage(const std::vector<RankProfile>& profiles,
                                    const RankCoordinate& coordinate) {
  const auto found = std::find_if(profiles.begin(), profiles.end(), [&](const RankProfile& p) {
    return p.coordinate.pipeline == coordinate.pipeline;
  });
  if (found == profiles.end()) throw std::logic_error("the busiest stage has no profile");
  return *found;
}

}  // namespace

Roofline roofline_of(const Plan& plan,
                     const std::vector<RankProfile>& profiles,
                     const ClusterEstimate& estimate,
                     const Calibration* calibration) {
  const ParallelLayout layout(plan.parallelism);
  const int64_t rank = busiest_rank(plan, estimate.time);
  ComputeTarget target = compute_target(plan, gpu_of(plan.cluster), calibration);
  target.speed = class_of_rank(estimate, rank).board.speed;
  Roofline roofline;
  roofline.plan = estimate.plan;
  roofline.rank = rank;
  roofline.iteration_seconds = estimate.time.iteration_seconds;
  const RankProfile& profile = profile_of_stage(profiles, layout.coordinate(rank));
  const auto kernels = priced_kernels(profile, target);
  set_rows(kernels, target.gpu, target.dtype, roofline);
  Waits waits{.bubble = estimate.time.bubble_seconds,
              .optimizer = estimate.time.optimizer_seconds,
              .data = estimate.time.data_loading_seconds};
  split_compute(kernels, estimate.time, waits);
  split_communication(estimate.time.exposed_communication_seconds,
                      call_seconds(plan, profile, fabric_of(plan)),
                      waits);
  roofline.bounds = bounds_of(waits, roofline.iteration_seconds, [](auto) { return std::nullopt; });
  roofline.rates = estimate.rates;
  return roofline;
}

}  // namespace estimator
