// The network of a plan's cluster, and where a group of ranks lies on it.
//
// GPUs form domains. Inside a domain every GPU reaches every other over the intra link: the NVLink
// or PCIe of one machine, or an NVLink domain that spans several machines, as in NVL72. Of each
// such domain the job takes equally many machines: 64 machines of 4 GPUs lie in four racks, 16 in
// each. NVIDIA's own runs ask Slurm for such segments of racks (Megatron-Bridge @067f987,
// scripts/performance/utils/executors.py). If that would fill less than half of a rack, the job
// lies in as few racks as hold it, as evenly as can be: 19 machines are 9 and 10 (assumed). NICs
// join the domains: at full bandwidth inside a pod, and over an oversubscribed spine between pods.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/communication/measured_collectives.h"
#include "estimator/communication/nccl_channels.h"
#include "estimator/communication/rank_blocks.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// How far apart two ranks lie.
enum class Distance { kInDomain, kInPod, kAcrossPods };

struct Fabric {
  Link intra;  ///< rates of one GPU's port
  Link inter;  ///< rates of one NIC
  std::string gpu_cuda_name;
  int64_t compute_capability = 90;  ///< times ten
  int64_t gpus = 0;                 ///< of the job
  int64_t machine_gpus = 1;
  int64_t domain_gpus = 1;      ///< of the job; of the smallest domain
  int64_t unequal_domains = 0;  ///< how many, where they have unequally many machines
  double nics_per_gpu = 1;
  int64_t pod_gpus = 0;  ///< 0: one pod holds everything
  double spine_oversubscription = 1;
  bool sharp = false;  ///< the network's switches reduce
  bool nics_behind_cpu = false;
  int64_t nccl_version = kModelledNccl;
  std::optional<NcclAlgorithm> only_algorithm;  ///< NCCL_ALGO
  std::vector<MeasuredCollective> measured;

  /// Bandwidth of one rank out of its domain when all ranks of the domain send at once: its share
  /// of the NICs. So groups that run at the same time (the data groups of the tensor ranks) share
  /// the NICs fairly.
  double network_bytes_per_second() const { return inter.achieved_bytes_per_second * nics_per_gpu; }

  RankBlocks machines() const { return {.size = machine_gpus, .ranks = gpus}; }
  RankBlocks domains() const {
    return {.size = domain_gpus, .ranks = gpus, .unequal = unequal_domains, .unit = machine_gpus};
  }
  RankBlocks pods() const { return {.size = pod_gpus, .ranks = gpus}; }  ///< where there are any

  bool same_domain(int64_t rank, int64_t other) const { return domains().together(rank, other); }
  bool same_pod(int64_t rank, int64_t other) const {
    return pod_gpus == 0 || pods().together(rank, other);
  }
  Distance distance(int64_t rank, int64_t other) const {
    if (same_domain(rank, other)) return Distance::kInDomain;
    return same_pod(rank, other) ? Distance::kInPod : Distance::kAcrossPods;
  }
};

/// How far two members of groups of one kind lie apart, in the group where they are farthest: the
/// ones with the indices `from` and `to` of a group of this one span.
Distance farthest_pair(const RankSpan& span, int64_t from, int64_t to, const Fabric& fabric);

/// The usual machines of this GPU, as many as so many ranks need.
ClusterConfig usual_cluster(const Gpu& gpu, int64_t ranks, int64_t gpus_per_node);

/// The fabric of a resolved cluster. Reads the files of measured collectives that it names.
/// Throws std::logic_error for a name that is not in the database, and UserError for a damaged
/// file.
Fabric fabric_of(const ClusterConfig& cluster);

/// The same under the rules of a plan: a deterministic run may leave NCCL only its rings.
Fabric fabric_of(const Plan& plan);

/// The GPU of a resolved plan. Throws std::logic_error for a name that is not in the database.
const Gpu& gpu_of(const ClusterConfig& cluster);

/// How many ranks of a group share a machine, a domain and a pod. It describes the worst-placed
/// group of its kind, or the group itself where its place is known (groups of a program).
struct GroupPlacement {
  int64_t ranks = 1;
  int64_t ranks_per_domain = 1;
  int64_t ranks_per_machine = ranks_per_domain;
  int64_t ranks_per_pod = ranks;

  int64_t domains() const { return (ranks + ranks_per_domain - 1) / ranks_per_domain; }
  /// Ranks that reach each other without the spine. A domain may be larger than a pod.
  int64_t ranks_off_spine() const { return std::max(ranks_per_pod, ranks_per_domain); }
};

/// The placement of a group. The work grows with the number of spans, not of ranks. If a group is
/// spread unevenly over domains, every domain counts as if it held the smallest piece.
GroupPlacement place(const RankGroup& group, const Fabric& fabric);

}  // namespace estimator
