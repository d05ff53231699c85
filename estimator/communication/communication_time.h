// Seconds of a collective, as NCCL would run it.
//
// 1. A measured curve (nccl-tests) of the same collective over the same group, where the fabric has
//    one, is the answer.
// 2. Else NCCL's own model (nccl_model.h) chooses algorithm and protocol, and gives latency and
//    bandwidth. Fits to measurements (collective_fit.h) add what the model leaves out: a floor for
//    rendezvous, the share of the bandwidth reached at a size, and for NVLS the waves that fill and
//    drain the pipeline, which take the place of NCCL's own correction for it. Trees in Simple fill
//    too (tree_pipeline.h). Launching is the host's, and not in it.
// 3. Sharing: NCCL knows nothing of other groups. A group gets its ranks' share of the NICs, and
//    across an oversubscribed spine what the uplinks leave: in a ring or tree one rank's flow of
//    each group leaves a pod, so that r:1 is felt only by groups with fewer than r ranks in a pod.
//    That is of groups of one kind; what groups of different kinds take of a port: port_use.h.
//
// Not in it: congestion beyond fair shares, hops from rail to rail, NUMA sockets, reductions in
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
  std::string origin;                 ///< the file, where it was measured
  std::optional<NcclOption> option;   ///< none for calls made of messages
};

/// The time of `call` in a group that lies like this; 0 for a group of one.
CollectiveTime collective_time(const CollectiveCall& call,
                               const GroupPlacement& placement,
                               const Fabric& fabric);

/// Multiprocessors of each GPU that `call` keeps busy: NCCL runs a block of 512 threads or more for
/// each channel (enqueue.cc), and messages use no more channels than a ring. 0 for a group of one.
int64_t busy_multiprocessors(const CollectiveCall& call,
                             const GroupPlacement& placement,
                             const Fabric& fabric);

/// Seconds of `call` in `group`. send and recv: over the network unless the whole group lies on one
/// domain; see send_seconds.
double collective_seconds(const CollectiveCall& call, const RankGroup& group, const Fabric& fabric);

/// Seconds from send to received, between two known ranks.
double send_seconds(int64_t bytes, int64_t from_rank, int64_t to_rank, const Fabric& fabric);

/// NCCL's model alone, without floor and fits: what its tuner believes.
double nccl_model_seconds(const CollectiveCall& call,
                          const GroupPlacement& placement,
                          const Fabric& fabric);

/// The group as NCCL's tuner sees it.
NcclTopology nccl_topology(const GroupPlacement& placement, const Fabric& fabric);

}  // namespace estimator
