#include "estimator/cluster/roofline.h"

#include <algorithm>
#include <stdexcept>

#include "estimator/cluster/roofline_rows.h"
#include "estimator/communication/fabric.h"
#include "estimator/compute/kernel_price.h"
#include "estimator/plan/parallel_layout.h"

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

/// Whether a group's ranks are all in one NVLink or PCIe domain; groups ascend in rank.
bool is_inside_domain(GroupKind kind,
                      const ParallelLayout& layout,
                      int64_t rank,
                      const Fabric& fabric) {
  const RankGroup group = layout.group(kind, rank);
  return fabric.same_domain(group.member(0), group.member(group.size() - 1));
}

void split_communication(const ExposedCommunication& exposed,
                         const ParallelLayout& layout,
                         int64_t rank,
                         const Fabric& fabric,
                         Waits& waits) {
  const auto add = [&](double seconds, GroupKind kind) {
    if (seconds == 0) return;
    (is_inside_domain(kind, layout, rank, fabric) ? waits.nvlink : waits.network) += seconds;
  };
  add(exposed.tensor, GroupKind::kTensor);
  add(exposed.pipeline, GroupKind::kPipeline);
  add(exposed.data, GroupKind::kDataContext);
  add(exposed.context, GroupKind::kContext);
  add(exposed.expert, GroupKind::kExpert);
}

/// A rank of the class whose micro-batches take longest.
int64_t slowest_rank(const ClusterEstimate& estimate) {
  const auto slowest = std::max_element(estimate.rank_classes.begin(),
                                        estimate.rank_classes.end(),
                                        [](const RankClassEstimate& a, const RankClassEstimate& b) {
                                          return a.forward_seconds + a.backward_seconds <
                                                 b.forward_seconds + b.backward_seconds;
                                        });
  if (slowest == estimate.rank_classes.end()) throw std::logic_error("an estimate has no ranks");
  return slowest->representative_rank;
}

const RankProfile& profile_of_stage(const std::vector<RankProfile>& profiles,
                                    const RankCoordinate& coordinate) {
  const auto found = std::find_if(profiles.begin(), profiles.end(), [&](const RankProfile& p) {
    return p.coordinate.pipeline == coordinate.pipeline;
  });
  if (found == profiles.end()) throw std::logic_error("the slowest stage has no profile");
  return *found;
}

}  // namespace

Roofline roofline_of(const Plan& plan,
                     const std::vector<RankProfile>& profiles,
                     const ClusterEstimate& estimate,
                     const Calibration* calibration) {
  const ParallelLayout layout(plan.parallelism);
  const ComputeTarget target = compute_target(plan, gpu_of(plan.cluster), calibration);
  Roofline roofline;
  roofline.plan = estimate.plan;
  roofline.rank = slowest_rank(estimate);
  roofline.iteration_seconds = estimate.time.iteration_seconds;
  const auto kernels =
      priced_kernels(profile_of_stage(profiles, layout.coordinate(roofline.rank)), target);
  set_rows(kernels, target.gpu, target.dtype, roofline);
  Waits waits{.bubble = estimate.time.bubble_seconds,
              .optimizer = estimate.time.optimizer_seconds,
              .data = estimate.time.data_loading_seconds};
  split_compute(kernels, estimate.time, waits);
  split_communication(
      estimate.time.exposed_communication_seconds, layout, roofline.rank, fabric_of(plan), waits);
  roofline.bounds = bounds_of(waits, roofline.iteration_seconds, [](auto) { return std::nullopt; });
  roofline.rates = estimate.rates;
  return roofline;
}

}  // namespace estimator
