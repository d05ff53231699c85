#include "estimator/communication/fabric.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "estimator/base/files.h"
#include "estimator/base/units.h"
#include "estimator/plan/frameworks.h"

namespace estimator {
namespace {

const Link& link_named(const std::string& name) {
  const Link* link = find_link(name);
  if (link == nullptr) throw std::logic_error("a resolved plan names an unknown link: " + name);
  return *link;
}

/// The largest number of machines, up to `most`, that divides the job equally.
int64_t equal_share(int64_t machines, int64_t most) {
  int64_t share = most;
  while (machines % share != 0) --share;
  return share;
}

/// The NVLink domains of a job: machines alone, or where switches join machines, racks.
RankBlocks domains_of(const ClusterConfig& cluster, const Gpu& gpu, const Link& intra) {
  const int64_t machine = cluster.gpus_per_node;
  RankBlocks domains{.size = machine, .ranks = cluster.world_size(), .unit = machine};
  if (!intra.spans_machines) return domains;
  const int64_t room = std::clamp<int64_t>(gpu.nvlink_domain_gpus / machine, 1, cluster.nodes);
  const int64_t equal = equal_share(cluster.nodes, room);
  if (2 * equal >= room) {
    domains.size = machine * equal;
  } else {
    domains.unequal = divide_up(cluster.nodes, room);
    domains.size = machine * (cluster.nodes / domains.unequal);
  }
  return domains;
}

}  // namespace

const Gpu& gpu_of(const ClusterConfig& cluster) {
  const Gpu* gpu = find_gpu(cluster.gpu);
  if (gpu == nullptr) {
    throw std::logic_error("a resolved plan names an unknown GPU: " + cluster.gpu);
  }
  return *gpu;
}

ClusterConfig usual_cluster(const Gpu& gpu, int64_t ranks, int64_t gpus_per_node) {
  ClusterConfig cluster;
  cluster.gpu = gpu.id;
  cluster.gpus_per_node = gpus_per_node;
  cluster.nics_per_node = gpus_per_node;
  cluster.nodes = divide_up(ranks, gpus_per_node);
  cluster.intra_link = gpu.default_intra_link;
  cluster.inter_link = gpu.default_inter_link;
  return cluster;
}

Fabric fabric_of(const ClusterConfig& cluster) {
  const Gpu& gpu = gpu_of(cluster);
  Fabric fabric;
  fabric.intra = link_named(cluster.intra_link);
  fabric.inter = link_named(cluster.inter_link);
  fabric.gpu_cuda_name = gpu.cuda_name;
  fabric.compute_capability = std::lround(10 * gpu.capability());
  fabric.nics_behind_cpu = gpu.nics_behind_cpu;
  fabric.gpus = cluster.world_size();
  fabric.machine_gpus = cluster.gpus_per_node;
  const RankBlocks domains = domains_of(cluster, gpu, fabric.intra);
  fabric.domain_gpus = domains.size;
  fabric.unequal_domains = domains.unequal;
  fabric.nics_per_gpu =
      static_cast<double>(cluster.nics_per_node) / static_cast<double>(cluster.gpus_per_node);
  if (cluster.nodes_per_pod && *cluster.nodes_per_pod < cluster.nodes) {
    fabric.pod_gpus = *cluster.nodes_per_pod * cluster.gpus_per_node;
  }
  fabric.spine_oversubscription = cluster.spine_oversubscription;
  fabric.sharp = cluster.sharp;
  if (!cluster.nvls) fabric.intra.nvls_bytes_per_second.reset();
  for (const std::string& path : cluster.nccl_tests) {
    fabric.measured.push_back(read_nccl_tests(read_file(path), path));
  }
  return fabric;
}

Fabric fabric_of(const Plan& plan) {
  Fabric fabric = fabric_of(plan.cluster);
  if (plan.training.deterministic_mode &&
      traits_of(plan.training.framework).rings_when_deterministic) {
    fabric.only_algorithm = NcclAlgorithm::kRing;
  }
  return fabric;
}

Distance farthest_pair(const RankSpan& span, int64_t from, int64_t to, const Fabric& fabric) {
  const int64_t low = std::min(from, to), high = std::max(from, to);
  const int64_t offset = low * span.stride;
  const int64_t length = (high - low + 1) * span.stride;  // groups begin at any rank of a stride
  const auto cut = [&](const RankBlocks& blocks) {
    return blocks.cut(offset, length, span.distance());
  };
  if (!cut(fabric.domains())) return Distance::kInDomain;
  return fabric.pod_gpus > 0 && cut(fabric.pods()) ? Distance::kAcrossPods : Distance::kInPod;
}

GroupPlacement place(const RankGroup& group, const Fabric& fabric) {
  GroupPlacement placement{.ranks = group.size()};
  placement.ranks_per_domain = fabric.domains().ranks_together(group);
  placement.ranks_per_machine = fabric.machines().ranks_together(group);
  placement.ranks_per_pod =
      fabric.pod_gpus == 0 ? placement.ranks : fabric.pods().ranks_together(group);
  return placement;
}

}  // namespace estimator
