// How long a tree in Simple takes to fill (src/enqueue.cc, src/device/all_reduce.h @5067397).
//
// Simple forwards whole chunks: each rank on the way up, and on the way down, receives one before
// it sends it. NCCL's model has the latency of these hops, not the time of the first chunk on them.
// LL and LL128 forward as lines arrive.
#pragma once

#include <cstdint>

#include "estimator/communication/nccl_model.h"

namespace estimator {

/// Microseconds of the first chunk of a tree all-reduce on all hops: 2 (g-1) inside a node, 2
/// floor(log2 N) between nodes, those `network_slowdown` times as long. 0 for other options.
double tree_fill_us(const NcclOption& option,
                    const NcclTopology& topology,
                    int64_t bytes,
                    double network_slowdown);

}  // namespace estimator
