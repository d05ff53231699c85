// The network of a plan's cluster, and where a group of ranks lies on it.
//
// GPUs form islands: inside one, every GPU reaches every other over the intra link (NVLink or PCIe
// of a machine; several machines where an NVLink domain spans them, as in NVL72). Islands are
// joined by NICs.
#pragma once

#include <cstdint>

#include "estimator/hardware.h"
#include "estimator/parallel_layout.h"
#include "estimator/plan.h"

namespace estimator {

struct Fabric {
  Link intra;  ///< rates of one GPU's port
  Link inter;  ///< rates of one NIC
  int64_t island_gpus = 1;
  double nics_per_gpu = 1;

  /// What one rank moves out of its island when all ranks of the island do: its share of the NICs.
  /// Groups that run side by side (the data groups of the tensor ranks) thereby share NICs fairly.
  double network_bytes_per_second() const { return inter.achieved_bytes_per_second * nics_per_gpu; }

  bool same_island(int64_t rank, int64_t other) const {
    return rank / island_gpus == other / island_gpus;
  }
};

/// The fabric of a resolved plan. Throws std::logic_error for a name that is not in the database.
Fabric fabric_of(const Plan& plan);

/// The GPU of a resolved plan. Throws std::logic_error for a name that is not in the database.
const Gpu& gpu_of(const Plan& plan);

/// How many ranks of a group share an island, in the worst-placed group of its kind.
struct GroupPlacement {
  int64_t ranks = 1;
  int64_t ranks_per_island = 1;

  int64_t islands() const { return (ranks + ranks_per_island - 1) / ranks_per_island; }
};

/// Takes time in the number of spans, not of ranks. Groups that straddle islands unevenly count as
/// if each island held the smallest piece.
GroupPlacement place(const RankGroup& group, const Fabric& fabric);

}  // namespace estimator
