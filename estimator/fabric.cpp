#include "estimator/fabric.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace estimator {
namespace {

const Link& link_named(const std::string& name) {
  const Link* link = find_link(name);
  if (link == nullptr) throw std::logic_error("a resolved plan names an unknown link: " + name);
  return *link;
}

/// Whole machines of one NVLink domain, or one machine.
int64_t island_size(const Plan& plan, const Gpu& gpu, const Link& intra) {
  const int64_t machine = *plan.cluster.gpus_per_node;
  if (intra.kind != "nvlink") return machine;
  return machine * std::max<int64_t>(1, gpu.nvlink_domain_gpus / machine);
}

}  // namespace

const Gpu& gpu_of(const Plan& plan) {
  const Gpu* gpu = find_gpu(plan.cluster.gpu);
  if (gpu == nullptr) {
    throw std::logic_error("a resolved plan names an unknown GPU: " + plan.cluster.gpu);
  }
  return *gpu;
}

Fabric fabric_of(const Plan& plan) {
  Fabric fabric;
  fabric.intra = link_named(*plan.cluster.intra_link);
  fabric.inter = link_named(*plan.cluster.inter_link);
  fabric.island_gpus = island_size(plan, gpu_of(plan), fabric.intra);
  fabric.nics_per_gpu = static_cast<double>(*plan.cluster.nics_per_node) /
                        static_cast<double>(*plan.cluster.gpus_per_node);
  return fabric;
}

GroupPlacement place(const RankGroup& group, const Fabric& fabric) {
  GroupPlacement placement{.ranks = group.size()};
  for (const RankSpan& span : group.spans) {
    const int64_t reach = span.stride * span.count;  // groups of the kind start at multiples of it
    const int64_t together = std::gcd(fabric.island_gpus, reach) / span.stride;
    placement.ranks_per_island *= std::clamp<int64_t>(together, 1, span.count);
  }
  return placement;
}

}  // namespace estimator
