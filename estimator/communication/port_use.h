// What a call takes of a GPU's two ports: its link into the domain, and its share of the NICs.
//
// A port carries, each way, what a ring reaches on it (Link::achieved_bytes_per_second). Of a call
// of S bytes among n ranks, a rank sends (and receives)
//
//   2 (n-1)/n S  all-reduce, in a ring or tree      (n-1)/n S  all-gather, reduce-scatter, gather,
//   (1 + 1/n) S  all-reduce by NVLS                            scatter, all-to-all
//   S            broadcast, reduce, message
//
// Rings and trees with g ranks on a domain leave it once: the share 1/g of a rank's bytes takes
// its NICs, the rest its link, at the NICs' pace. Without NVLink both are one port: what goes to a
// NIC goes through the GPU's PCIe link as well.
//
// Calls that run side by side share a port fairly: on none do they take less time than their bytes
// together. What a port carries both ways at once does not count against each other.
#pragma once

#include "estimator/communication/communication_time.h"

namespace estimator {

/// Of the time that a call takes alone, the share that each port needs for its bytes: 0 to 1.
struct PortUse {
  double link = 0;
  double nic = 0;
};

/// Of a call that takes `time` alone.
PortUse port_use(const CollectiveCall& call,
                 const GroupPlacement& placement,
                 const CollectiveTime& time,
                 const Fabric& fabric);

/// Of a message between two known ranks that takes `seconds` alone.
PortUse send_port_use(
    int64_t bytes, int64_t from_rank, int64_t to_rank, double seconds, const Fabric& fabric);

/// Of calls of `seconds` and of others of `more_seconds`, one after the other.
PortUse mean_use(double seconds, const PortUse& use, double more_seconds, const PortUse& more);

/// What two calls take longer than alone for each second that they run side by side: 1 where both
/// need all of a port, 0 where no port is needed by both, or one has enough for both.
double lengthening(const PortUse& one, const PortUse& other);

}  // namespace estimator
