// How long a tree with the Simple protocol takes to fill (src/enqueue.cc, src/device/all_reduce.h
// @5067397).
//
// Simple forwards whole chunks: on the way up and on the way down, each rank receives a chunk
// before it sends it on. NCCL's model has the latency of these hops, but not the time that the
// first chunk takes on them. LL and LL128 forward each line when it arrives, so they need no such
// time.
#pragma once

#include <cstdint>

#include "estimator/communication/nccl_model.h"

namespace estimator {

/// Microseconds that the first chunk of a tree all-reduce takes on all hops: 2 (g-1) hops inside a
/// node, and 2 floor(log2 N) hops between nodes, which take `network_slowdown` times as long. 0 for
/// other options.
double tree_fill_us(const NcclOption& option,
                    const NcclTopology& topology,
                    int64_t bytes,
                    double network_slowdown);

}  // namespace estimator
