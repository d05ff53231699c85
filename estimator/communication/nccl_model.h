// NCCL's cost model: the time that its tuner expects of each algorithm and protocol, and which of
// them it chooses.
//
// From src/graph/tuning.cc @5067397: a call of `bytes` takes latency + bytes / bandwidth. Each
// algorithm has a rule for its latency and its bandwidth, with ceilings by GPU generation; NCCL
// runs the fastest (src/enqueue.cc, topoGetAlgoInfo). For n ranks on N nodes with g ranks each,
// where a is the protocol's latency of a hop inside a node and b that of a hop over the network:
//
//   algorithm       for                        latency after base
//   ring            all-reduce                 (2(n-1) - 2(N-1)) a + 2(N-1) b
//   ring            all-gather, reduce-scatter (n-1 - (N-1)) a + (N-1) b
//   ring            broadcast, reduce          one hop; n b where channels differ: N > 1, g > 1 and
//                                              several NICs
//   tree            all-reduce                 2 ((g-1) a + floor(log2 N) b)
//   NVLS            all-reduce, N = 1          a (25 us); over SHARP + b
//   NVLS tree       all-reduce, N > 1          a + 2 floor(log2 N) b
//   CollNet direct  all-reduce, SHARP          2 (min(1, g-1) a + 0.4 (g-1)) + b
//   CollNet chain   all-reduce, SHARP          2 (g-1) a + b
//   PAT             gather, scatter, g = 1     floor(log2 N) b / 3.5 + 2.8 n
//
// Point-to-point calls, and those made of them, have no model in NCCL: see message_time.h.
#pragma once

#include <optional>
#include <vector>

#include "estimator/communication/nccl_channels.h"
#include "estimator/profile/collective_call.h"

namespace estimator {

/// One way to run a call. `gbps` is the algorithm bandwidth: bytes of the call divided by its time.
struct NcclOption {
  NcclAlgorithm algorithm = NcclAlgorithm::kRing;
  NcclProtocol protocol = NcclProtocol::kSimple;
  NcclChannels channels;
  double latency_us = 0;
  double gbps = 0;
};

/// Whether it is NVLS in one node, or the NVLS tree between nodes.
bool is_nvls(NcclAlgorithm algorithm);

/// Whether NCCL has algorithms for `kind`: not for all-to-all, gather, scatter, send and recv.
bool has_nccl_algorithms(CollectiveKind kind);

/// Every option that is enabled for a call of this kind, in NCCL's order. It is empty when the
/// topology allows only one algorithm (NCCL_ALGO) and that one cannot run the call. A barrier
/// counts as an all-reduce.
std::vector<NcclOption> nccl_options(CollectiveKind kind, const NcclTopology& topology);

/// The time that NCCL expects of an option, with its corrections for the size of the call.
struct NcclBelief {
  double latency_us = 0;
  double transfer_us = 0;

  double us() const { return latency_us + transfer_us; }
};
NcclBelief nccl_belief(const NcclOption& option,
                       CollectiveKind kind,
                       const NcclTopology& topology,
                       int64_t bytes);

/// The option that NCCL runs. Throws std::logic_error for a kind without algorithms or options.
NcclOption nccl_choice(CollectiveKind kind, const NcclTopology& topology, int64_t bytes);

}  // namespace estimator
