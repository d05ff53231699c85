// Which channels NCCL's topology search finds: how many, and how fast each is.
//
// The search (src/graph/search.cc @5067397) walks a list of speeds and keeps the graph that moves
// most. On machines whose GPUs are all alike and all reach each other (NVSwitch, or PCIe below one
// root) its result follows from bandwidths alone; that is what is computed here. Not searched:
// sockets, PCIe trees, NVLink meshes without a switch.
#pragma once

#include <cstdint>
#include <optional>

#include "estimator/communication/nccl_tables.h"

namespace estimator {

/// What NCCL's own code calls a version: 2.26.2 is 22602.
constexpr int64_t kModelledNccl = 23007;

/// A group of ranks on equal machines, as NCCL sees it. An NVLink domain counts as one node.
struct NcclTopology {
  int64_t compute_capability = 90;  ///< times ten
  int64_t ranks = 1;
  int64_t nodes = 1;
  bool nvlink = true;    ///< GPUs of a node reach each other over NVLink, else over PCIe
  bool nvls = false;     ///< an NVSwitch that reduces
  double gpu_gbps = 0;   ///< what one GPU moves to its node, one direction: all its links
  int64_t nics = 1;      ///< of one node, within reach of the group
  double nic_gbps = 0;   ///< of one NIC
  bool collnet = false;  ///< SHARP in the network's switches
  bool amd_cpu = false;
  bool nics_behind_cpu = false;
  int64_t version = kModelledNccl;
  std::optional<NcclAlgorithm> only;  ///< NCCL_ALGO

  double ranks_per_node() const { return static_cast<double>(ranks) / static_cast<double>(nodes); }
};

/// Equal channels: GB/s of each inside a node and on the network.
struct NcclChannels {
  int64_t count = 0;
  double in_node_gbps = 0;
  double across_gbps = 0;

  /// Of a ring or a tree as many run as were found, twice (graph/connect.cc, ncclTopoPostset).
  int64_t running() const { return 2 * count; }
};

enum class NcclPattern { kRing, kTree, kNvls };

/// The channels that the search finds; a count of 0 where the pattern cannot run.
NcclChannels nccl_channels(NcclPattern pattern, const NcclTopology& topology);

}  // namespace estimator
