// What NCCL holds on a GPU, outside PyTorch's allocator.
//
// A connection has a buffer for each protocol: 512 KiB for LL, 4,800 KiB for LL128 and 4 MiB for
// Simple (NVIDIA/nccl init.cc, computeBuffSizes). Inside a domain the receiver has all three,
// rounded to 10 MiB, and the sender 2 MiB (issue 1685 saw 10,485,760 and 2,097,152 bytes); over the
// network the sender has LL128 and Simple too, 10 MiB (transport/net.cc, sendProxyConnect). A
// communicator has
//
//   ring  one connection for each channel (any collective); across domains one rank of each domain
//         sends over the network
//   tree  two for each channel, parent and child (all-reduce across domains)
//   peer  in the same domain: one and 2 MiB for each channel of each peer that it sends to or
//         receives from (issue 1685: 7 peers x 32 channels x 14 MiB = 3.3 GB, as measured). An
//         all-to-all is a send to, and a receive from, every other rank
//   pool  for all peers over the network together: one to send and one to receive, 16 steps of
//         128 KiB for each channel (transport/net.cc, sharedNetBuffersInit). A rank holds the
//         sending pool of every neighbour whose messages leave by its NIC (PXN)
//   NVLS  2 x 16 channels x local ranks x 1 MiB (nvls.cc: 8 steps of 128 KiB)
//
// each with a band: 16 to 32 channels of a ring inside a domain and 4 to 32 across (NCCL 2.19 to
// 2.28), 2 to 32 channels to a peer, NVLS from off (as NVIDIA's own launchers set it) to 24
// channels.
//
// Of these only what the rank uses is counted: NCCL connects when first used (2.22 and later).
// Before, a communicator connected its ring and a tree for each channel when it was made; over all
// its n ranks a tree has 2 (n - 1) connections: 24 channels make 576 MiB for 2 ranks inside an
// domain and 720 MiB for 4 (issue 964 saw 544 and 688). Which framework means such an NCCL, and
// what else its framework opens: framework_communicators.h. A group of one costs nothing.
#pragma once

#include <vector>

#include "estimator/base/tagged.h"
#include "estimator/communication/fabric.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// A term for each group that the profile's collectives use, by kind of group.
std::vector<MemoryTerm> communicator_memory(const RankProfile& profile,
                                            const ParallelLayout& layout,
                                            const Fabric& fabric);

/// A term for each communicator of a program.
std::vector<MemoryTerm> communicator_memory(const ProgramRecord& program, const Fabric& fabric);

}  // namespace estimator
