#include "estimator/step/host_waits.h"

#include "estimator/plan/frameworks.h"

namespace estimator {
namespace {

/// Whether the host waits for its GPU at the end of each forward and backward.
bool synchronizes_sends(const Plan& plan) {
  const ParallelConfig& parallelism = plan.parallelism;
  const bool overlaps = parallelism.virtual_stages > 1 && parallelism.overlap_p2p_communication;
  return parallelism.pipeline > 1 && !overlaps &&
         traits_of(plan.training.framework).synchronized_sends;
}

/// Whether the host waits for its GPU before each micro-batch.
bool waits_for_tokens(const Plan& plan) {
  return traits_of(plan.training.framework).waits_for_tokens && plan.parallelism.pipeline == 1;
}

}  // namespace

HostWaits host_waits(const Plan& plan, const LaunchCost& launch, bool has_order) {
  HostWaits waits{.seconds = launch.wait_seconds,
                  .at_ends_of_parts = has_order && synchronizes_sends(plan),
                  .at_ends_of_micro_batches = has_order && waits_for_tokens(plan),
                  .before_step = std::nullopt,
                  .operator_seconds = launch.host_operator_seconds,
                  .range_seconds = launch.host_ranges};
  // Such a host has nothing to do between its wait and the next step.
  if (has_order && traits_of(plan.training.framework).synchronized_steps) waits.before_step = 0;
  return waits;
}

}  // namespace estimator
