// Point-to-point messages, and the calls that NCCL builds from them: all-to-all, gather, scatter.
//
// NCCL has no model of them. A message takes the base latency and one hop of a ring with the Simple
// protocol, and the time of its bytes on the link. Every further peer across the network costs the
// time to post one more message.
#pragma once

#include "estimator/communication/fabric.h"

namespace estimator {

/// Seconds from the start of the send until the message is received, inside a domain or over a NIC.
double message_seconds(int64_t bytes, bool in_domain, const Fabric& fabric);

/// Seconds of an all-to-all in which every rank sends an equal part of `bytes` to each member; the
/// part for itself stays. All ranks of a domain share the NICs, and all ranks of a pod share the
/// spine. The slowest of the GPU's link (over which without NVLink all parts go), NICs and spine
/// decides.
double all_to_all_seconds(int64_t bytes, const GroupPlacement& placement, const Fabric& fabric);

}  // namespace estimator
