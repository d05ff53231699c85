// Seconds of a collective, as NCCL would run it.
//
// 1. If the fabric has a measured curve (nccl-tests) of the same collective over the same group,
//    that curve gives the time. It was of one group. Where other groups share the NICs with it, or
//    the group leaves its pod, the time is what the curve says of as many times more bytes, and
//    counts as computed.
// 2. Else NCCL's own model (nccl_model.h) chooses algorithm and protocol, and gives latency and
//    bandwidth. Fits to measurements (collective_fit.h) add what the model leaves out: a shortest
//    time for the rendezvous, the share of the bandwidth that is reached at a size, and for NVLS
//    the waves that fill and drain the pipeline, which replace NCCL's own correction for that.
//    Trees with the Simple protocol also take time to fill (tree_pipeline.h). The time that the
//    host takes to launch the call is not included.
// 3. NCCL's model does not know that groups share links. Here a group gets its ranks' share of the
//    NICs and, across an oversubscribed spine, its share of the uplinks. In a ring or tree the
//    bytes that leave a domain leave through the NICs of all its ranks, and of the domains in a pod
//    only one sends out of the pod. So an oversubscription of r:1 slows only groups that lie in
//    fewer than r domains of a pod. This covers groups of one kind; port_use.h covers groups of
//    different kinds that use the same port.
//
// Not modelled: congestion beyond fair shares, hops from rail to rail, NUMA sockets, reductions in
// integer or FP8 types.
#pragma once

#include <optional>
#include <string>

#include "estimator/base/tagged.h"
#include "estimator/communication/fabric.h"
#include "estimator/communication/nccl_model.h"
#include "estimator/profile/collective_call.h"

namespace estimator {

struct CollectiveTime {
  double seconds = 0;
  Source source = Source::kComputed;  ///< computed, or measured
  std::string origin;                 ///< the file with the measurement; "" without one
  std::optional<NcclOption> option;   ///< what NCCL runs; empty for calls made of messages
};

/// The time of `call` in a group with this placement; 0 for a group of one rank.
CollectiveTime collective_time(const CollectiveCall& call,
                               const GroupPlacement& placement,
                               const Fabric& fabric);

/// How many multiprocessors of each GPU `call` keeps busy: NCCL runs a block of 512 threads or more
/// for each channel (enqueue.cc), and messages use at most as many channels as a ring. 0 for a
/// group of one rank.
int64_t busy_multiprocessors(const CollectiveCall& call,
                             const GroupPlacement& placement,
                             const Fabric& fabric);

/// Seconds of `call` in `group`. A send or recv is one of a ring (ring_message_seconds);
/// send_seconds() is for two known ranks.
double collective_seconds(const CollectiveCall& call, const RankGroup& group, const Fabric& fabric);

/// Seconds from the start of the send until the message is received, between two known ranks.
double send_seconds(int64_t bytes, int64_t from_rank, int64_t to_rank, const Fabric& fabric);

/// The same between two ranks so far from each other.
double send_seconds(int64_t bytes, Distance distance, const Fabric& fabric);

/// The group as NCCL's tuner sees it.
NcclTopology nccl_topology(const GroupPlacement& placement, const Fabric& fabric);

}  // namespace estimator
