// What a process holds on its GPU outside PyTorch's allocator: the CUDA context and NCCL's buffers.
//
// NCCL, for each connection of a channel (NVIDIA/nccl init.cc, computeBuffSizes): a receive buffer
// of 512 KiB for LL, 4,800 KiB for LL128 and 4 MiB for Simple, which cuMem rounds to 10 MiB (issue
// 1685 saw 10,485,760 B), and 2 MiB on the sender's side. Each communicator has one such connection
//
//   ring   for each of its channels (all collectives)
//   tree   twice for each channel, parent and child (all-reduce across islands)
//   peer   for each channel of each peer that it sends to or receives from, and 2 MiB more (issue
//   1685: 7 peers x
//          32 channels x 14 MiB = 3.3 GB, as measured)
//
// and NVLS buffers: 2 x 16 channels x local ranks x 1 MiB (nvls.cc: 8 steps of 128 KiB). Buffers of
// a kind exist only where the rank uses it: NCCL connects when first used (2.22 and later). A group
// of one costs nothing.
#pragma once

#include <vector>

#include "estimator/cluster_estimate.h"
#include "estimator/fabric.h"
#include "estimator/plan.h"
#include "estimator/rank_profile.h"

namespace estimator {

/// Bytes that the context takes once kernels have run (assumed; see the GPU database).
MemoryTerm context_memory(const Gpu& gpu);

/// A term for each group that the profile's collectives use, by kind of group.
std::vector<MemoryTerm> communicator_memory(const RankProfile& profile,
                                            const ParallelLayout& layout,
                                            const Fabric& fabric);

}  // namespace estimator
