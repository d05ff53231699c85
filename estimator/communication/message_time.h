// Point-to-point messages, and the calls that NCCL builds from them: all-to-all, gather, scatter.
//
// NCCL has no model of them. A message takes the base and the hop of a ring in Simple, and its
// bytes over the link; every further peer across the network costs one post.
#pragma once

#include "estimator/communication/fabric.h"

namespace estimator {

/// Seconds from send to received inside a domain, or over a NIC.
double message_seconds(int64_t bytes, bool in_domain, const Fabric& fabric);

/// Every rank of the group sends an equal part of `bytes` to each member; its own part stays. Links
/// are shared by all ranks of a domain, the spine by all ranks of a pod; the slowest of NVLink,
/// NICs and spine counts.
double all_to_all_seconds(int64_t bytes, const GroupPlacement& placement, const Fabric& fabric);

}  // namespace estimator
