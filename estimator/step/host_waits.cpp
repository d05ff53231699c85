#include "estimator/step/host_waits.h"

#include <algorithm>
#include <numeric>

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

/// FSDP2's units in a model chunk: its layers, the experts of a layer whose ranks are others, and
/// the ends of the model, which are one unit in some frameworks.
int64_t units_of_chunk(const Plan& plan, int64_t stage, std::size_t chunk) {
  const std::vector<int64_t> layers = plan.layers_of_chunks(stage);
  const auto first = std::accumulate(
      layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(chunk), int64_t{0});
  const std::vector<bool> experts = plan.expert_layers_of_stage(stage);
  const auto begin = experts.begin() + first;
  const int64_t inside =
      plan.parallelism.expert > 1 ? std::count(begin, begin + layers[chunk], true) : 0;
  const int64_t is_first = stage == 0 && chunk == 0;
  const int64_t is_last = stage == plan.parallelism.pipeline - 1 && chunk + 1 == layers.size();
  const bool is_one = traits_of(plan.training.framework).root_unit;
  return layers[chunk] + inside + (is_one ? is_first | is_last : is_first + is_last);
}

}  // namespace

HostWaits host_waits(const Plan& plan,
                     const LaunchCost& launch,
                     const StageChunk& place,
                     bool has_order) {
  HostWaits waits{.seconds = launch.wait_seconds,
                  .at_ends_of_parts = has_order && synchronizes_sends(plan),
                  .at_ends_of_micro_batches = has_order && waits_for_tokens(plan),
                  .before_step = std::nullopt,
                  .operator_seconds = launch.host_operator_seconds};
  // Such a host has nothing to do between its wait and the next step.
  if (has_order && traits_of(plan.training.framework).synchronized_steps) waits.before_step = 0;
  if (!plan.fully_sharded()) return waits;
  // FSDP2's hooks before and after a unit are Python's.
  const auto units = static_cast<double>(units_of_chunk(plan, place.stage, place.chunk));
  waits.beside_forward_seconds = units * launch.host_ranges.at("FSDP::pre_forward");
  waits.beside_backward_seconds = units * launch.host_ranges.at("FSDP::pre_backward");
  return waits;
}

}  // namespace estimator
