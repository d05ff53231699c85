#include "estimator/cluster/offload_memory.h"

#include <algorithm>

namespace estimator {
namespace {

/// By stage; 0 where nothing is on the host.
std::vector<int64_t> bytes_of_stages(const Plan& plan,
                                     const std::vector<RankClass>& classes,
                                     const std::vector<const RankProfile*>& profiles) {
  std::vector<int64_t> bytes(static_cast<std::size_t>(plan.parallelism.pipeline), 0);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    for (const int64_t stage : classes[i].stages) {
      if (profiles[i]->host_memory) {
        bytes[static_cast<std::size_t>(stage)] = profiles[i]->host_memory->total_bytes;
      }
    }
  }
  return bytes;
}

}  // namespace

std::optional<HostMemoryEstimate> host_memory(const Plan& plan,
                                              const ParallelLayout& layout,
                                              const std::vector<RankClass>& classes,
                                              const std::vector<const RankProfile*>& profiles) {
  const std::vector<int64_t> of_stage = bytes_of_stages(plan, classes, profiles);
  HostMemoryEstimate host{
      .rank_bytes = *std::max_element(of_stage.begin(), of_stage.end()),
      .note =
          "master weights, moments and gradients of the offloaded parameters; page-locked pieces "
          "are rounded up to powers of two, and PyTorch's allocator keeps all that it once took, "
          "also the copies of whole parameters that Megatron-LM makes before it divides them"};
  if (host.rank_bytes == 0) return std::nullopt;
  const bool on_cpu = std::all_of(profiles.begin(), profiles.end(), [](const RankProfile* profile) {
    return profile->device.kind == DeviceKind::kCpu;
  });
  if (on_cpu) {
    host.source = Source::kComputed;
    host.note =
        "master weights, moments and gradients of the offloaded parameters, without page-locking";
  }
  const int64_t ranks = plan.cluster.gpus_per_node;
  for (int64_t first = 0; first < plan.world_size(); first += ranks) {
    int64_t bytes = 0;
    for (int64_t rank = first; rank < first + ranks; ++rank) {
      bytes += of_stage[static_cast<std::size_t>(layout.coordinate(rank).pipeline)];
    }
    host.node_bytes = std::max(host.node_bytes, bytes);
  }
  return host;
}

}  // namespace estimator
