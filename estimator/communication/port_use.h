// How much a call uses a GPU's two ports: its link into the domain, and its share of the NICs.
//
// In each direction a port has the bandwidth that a ring reaches on it
// (Link::achieved_bytes_per_second). In a call of S bytes among n ranks, a rank sends (and
// receives)
//
//   2 (n-1)/n S  all-reduce, in a ring or tree      (n-1)/n S  all-gather, reduce-scatter, gather,
//   (1 + 1/n) S  all-reduce by NVLS                            scatter, all-to-all
//   S            broadcast, reduce, message
//
// A ring (of messages, too) or tree with g ranks in a domain leaves the domain once: the share 1/g
// of a rank's bytes goes over its NICs and the rest over its link, at the pace of the NICs. Without
// NVLink the two are one port, because bytes for a NIC also pass the GPU's PCIe link.
//
// Calls that run at the same time share a port fairly: together they never take less time on a port
// than the sum of their bytes takes. The two directions of a port do not slow each other.
#pragma once

#include "estimator/communication/communication_time.h"

namespace estimator {

/// How busy a call keeps each port: the time that the port needs for the call's bytes, as a share
/// (0 to 1) of the time that the call takes when it runs alone.
struct PortUse {
  double link = 0;
  double nic = 0;
  bool operator==(const PortUse&) const = default;
};

/// The use of a call that takes `time` when it runs alone.
PortUse port_use(const CollectiveCall& call,
                 const GroupPlacement& placement,
                 const CollectiveTime& time,
                 const Fabric& fabric);

/// The use of a message between two known ranks that takes `seconds` when it runs alone.
PortUse send_port_use(
    int64_t bytes, int64_t from_rank, int64_t to_rank, double seconds, const Fabric& fabric);

}  // namespace estimator
