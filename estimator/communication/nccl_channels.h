// The channels that NCCL's topology search finds: how many there are, and how fast each is.
//
// The search (src/graph/search.cc @5067397) tries a list of speeds and keeps the graph with the
// highest total bandwidth. On machines whose GPUs are all alike and all reach each other (over
// NVSwitch, or PCIe below one root) the result follows from the bandwidths alone, and is computed
// here. Sockets, PCIe trees and NVLink meshes without a switch are not covered.
#pragma once

#include <cstdint>
#include <optional>

#include "estimator/communication/nccl_tables.h"

namespace estimator {

/// NCCL's version code (NCCL_VERSION_CODE): 2.26.2 is 22602.
constexpr int64_t kModelledNccl = 23007;

/// A group of ranks on equal machines, as NCCL sees it. An NVLink domain counts as one node. The
/// hosts' CPUs are not AMD's, for which tuning.cc has a higher ceiling of LL and slower posts.
struct NcclTopology {
  int64_t compute_capability = 90;  ///< times ten
  int64_t ranks = 1;
  int64_t nodes = 1;
  bool nvlink = true;    ///< the GPUs of a node are joined by NVLink, else by PCIe
  bool nvls = false;     ///< the NVSwitches can reduce
  double gpu_gbps = 0;   ///< bandwidth of all links of one GPU in its node, one direction
  int64_t nics = 1;      ///< NICs of one node that the group can use
  double nic_gbps = 0;   ///< of one NIC
  bool collnet = false;  ///< the network's switches reduce (SHARP)
  bool nics_behind_cpu = false;
  int64_t version = kModelledNccl;
  std::optional<NcclAlgorithm> only;  ///< NCCL_ALGO

  double ranks_per_node() const { return static_cast<double>(ranks) / static_cast<double>(nodes); }
};

/// Equal channels, with the GB/s of each inside a node and on the network.
struct NcclChannels {
  int64_t count = 0;
  double in_node_gbps = 0;
  double across_gbps = 0;

  /// How many channels run: NCCL doubles those that the search found for rings and trees
  /// (graph/connect.cc, ncclTopoPostset).
  int64_t running() const { return 2 * count; }
};

enum class NcclPattern { kRing, kTree, kNvls };

/// The channels that the search finds; the count is 0 when the pattern cannot run.
NcclChannels nccl_channels(NcclPattern pattern, const NcclTopology& topology);

}  // namespace estimator
