// Seconds of a collective, as NCCL would run it.
//
// The model is NCCL's own (src/graph/tuning.cc @5067397), reduced to what moves the result: each
// algorithm and protocol that can run has a latency and a bandwidth, t = latency + traffic /
// bandwidth, and the fastest is taken. For n ranks on N islands, g of them on each, with hop
// latencies a (inside an island) and b (network), and the bus: what a ring moves over the intra
// link, across islands at most g times a rank's share of the NICs:
//
//   algorithm  for                     latency                               traffic
//   ring       all-reduce              base + 2 ((n-N) a + (N-1) b)          2 (n-1)/n bytes
//   ring       gather, reduce-scatter  base + (n-N) a + (N-1) b              (n-1)/n bytes
//   ring       broadcast, reduce       base + (n-N) a + (N-1) b              bytes
//   tree       all-reduce, N > 1       base + 2 ((g-1) a + floor(log2 N) b)  2 bytes
//   NVLS       all-reduce, N = 1       25 us                                 2 (n-1)/n bytes
//   NVLS tree  all-reduce, N > 1       25 us + 2 floor(log2 N) 20.9 us       2 (n-1)/n bytes
//   PAT        gather, g = 1           8 us + log2(n) b / 3.5 + n 2.8 us     4/3 (n-1)/n bytes
//   pairs      all-to-all, one root    base + a or b                         (n-g)/n bytes outside
//   pair       send, recv              base + a or b                         bytes
//
// The protocols LL, LL128 and Simple each have a base, hops and a share of the bus of their own.
//
// Left out: SHARP in InfiniBand switches, the tree's dip at middle sizes, oversubscribed spines,
// hops from rail to rail.
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
