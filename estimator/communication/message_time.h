// Point-to-point messages, and the calls that NCCL builds from them: all-to-all, gather, scatter.
//
// NCCL has no model of them. A message takes the base latency and one hop of a ring with the Simple
// protocol, and the time of its bytes on the link. Every further peer across the network costs the
// time to post one more message.
#pragma once

#include "estimator/communication/fabric.h"

namespace estimator {

/// Seconds from the start of the send until the message is received, over a GPU's link, over its
/// share of the NICs, or over its share of the spine.
double message_seconds(int64_t bytes, Distance distance, const Fabric& fabric);

/// The same for a ring, in which every member of the group sends to the next one: as long as its
/// slowest message. Of the ranks in a domain one sends out of it. So it has the NICs' shares of all
/// of them, as far as its own GPU reaches the NICs: one, or more where each GPU has more.
double ring_message_seconds(int64_t bytes, const GroupPlacement& placement, const Fabric& fabric);

/// How much longer than inside a pod a ring or tree takes on the spine. Of the domains in a pod one
/// sends out of it.
double spine_slowdown(const GroupPlacement& placement, const Fabric& fabric);

/// The same of an all-to-all: all its bytes for other pods go over the spine.
double spine_slowdown_of_pairs(const GroupPlacement& placement, const Fabric& fabric);

/// Seconds from the moment a rank sets a flag in the memory of another one in its domain until that
/// one has seen it: a hop of NCCL's LL protocol, which does nothing else.
double signal_seconds(const Fabric& fabric);

/// Seconds of an all-to-all in which every rank sends an equal part of `bytes` to each member; the
/// part for itself stays. All ranks of a domain share the NICs, and all ranks of a pod share the
/// spine. The slowest of the GPU's link (over which without NVLink all parts go), NICs and spine
/// decides.
double all_to_all_seconds(int64_t bytes, const GroupPlacement& placement, const Fabric& fabric);

}  // namespace estimator
