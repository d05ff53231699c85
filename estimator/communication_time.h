// Seconds of a collective, as NCCL would run it.
//
// The model is NCCL's own (src/graph/tuning.cc @5067397), reduced to what moves the result: for
// each algorithm and protocol that can run, a latency L and a bandwidth; t = L + traffic /
// bandwidth; the fastest is taken. With n ranks on N islands, g of each group on an island, hop
// latencies a (in the island) and b (network):
//
//   bus          N = 1: what a ring moves over the intra link; else min(that, g x NIC share of a
//   rank) ring         all-reduce       L = base + (2(n-1) - 2(N-1)) a + 2(N-1) b    traffic 2
//   (n-1)/n bytes
//                gather, scatter  L = base + ((n-1) - (N-1)) a + (N-1) b       traffic (n-1)/n
//                bytes one root         L = base + (n-N) a + (N-1) b                 traffic bytes
//   tree         all-reduce, N > 1  L = base + 2 ((g-1) a + floor(log2 N) b)   traffic 2 bytes
//   NVLS         all-reduce, N = 1  L = 25 us                                  traffic 2 (n-1)/n
//   bytes NVLS tree    all-reduce, N > 1  L = 25 us + 2 floor(log2 N) 20.9 us        traffic 2
//   (n-1)/n bytes PAT          gather, scatter, g = 1   L = 8 us + log2(N) b / 3.5 + 2.8 us n,  bus
//   x 0.75 all-to-all   L = base + hop; the slower of (g-1)/n bytes over the intra link and (n-g)/n
//   over the NIC send, recv   L = base + hop; bytes over the link or the NIC share
//
// Protocols LL, LL128 and Simple have their own base, hops and share of the bus. Measured times lie
// above the model, and nccl-tests' curves say by how much: see `collective_seconds`.
//
// Left out: SHARP in InfiniBand switches, the tree's dip at middle sizes, oversubscribed spines,
// cross-rail hops.
#pragma once

#include "estimator/collective_call.h"
#include "estimator/fabric.h"

namespace estimator {

/// Seconds of `call` in `group`: NCCL's model, plus a floor for launch and rendezvous, over a
/// derate by size. Floor and derate are fitted to published nccl-tests curves of 8 x H100, H200 and
/// A100 (Azure/AI-benchmarking-guide @8fd0c6e); over a network the floor is assumed. 0 for a group
/// of one.
///
/// send and recv: over the network unless the whole group lies on one island; see send_seconds.
double collective_seconds(const CollectiveCall& call, const RankGroup& group, const Fabric& fabric);

/// Seconds from send to received, between two known ranks.
double send_seconds(int64_t bytes, int64_t from_rank, int64_t to_rank, const Fabric& fabric);

/// NCCL's model alone, without floor and derate: what its tuner believes.
double nccl_model_seconds(const CollectiveCall& call,
                          const GroupPlacement& placement,
                          const Fabric& fabric);

}  // namespace estimator
