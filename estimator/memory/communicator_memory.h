// What NCCL holds on a GPU, outside PyTorch's allocator.
//
// A connection has a buffer for each protocol: 512 KiB for LL, 4,800 KiB for LL128 and 4 MiB for
// Simple (NVIDIA/nccl init.cc, computeBuffSizes). Inside an NVLink domain the receiver allocates
// all three, rounded to 10 MiB, and the sender 2 MiB (issue 1685 saw 10,485,760 and 2,097,152
// bytes). Over the network the sender allocates LL128 and Simple too, 10 MiB (transport/net.cc,
// sendProxyConnect). A communicator has these connections:
//
//   ring  one connection for each channel (any collective); across domains one rank of each domain
//         sends over the network
//   tree  two connections for each channel, to parent and child (all-reduce across domains)
//   peer  for each peer of the same domain that the rank sends to or receives from, and for each
//         channel, one connection and 2 MiB (issue 1685: 7 peers x 32 channels x 14 MiB = 3.3 GB,
//         as measured). An all-to-all sends to, and receives from, every other rank
//   pool  two pools of buffers for all peers over the network together, one to send and one to
//         receive: 16 steps of 128 KiB for each channel (transport/net.cc, sharedNetBuffersInit).
//         A rank holds the sending pool of every neighbour whose messages leave by its NIC (PXN)
//   NVLS  2 x 16 channels x local ranks x 1 MiB (nvls.cc: 8 steps of 128 KiB)
//
// Each has a band: 16 to 32 channels of a ring inside a domain and 4 to 32 across (NCCL 2.19 to
// 2.28), 2 to 32 channels to a peer, and NVLS from off (as NVIDIA's own launchers set it) to 24
// channels.
//
// Only the connections that the rank uses are counted: since 2.22 NCCL makes a connection when it
// is first used. Before, a communicator made a ring and a tree for each channel when it was
// created. A tree over n ranks has 2 (n - 1) connections in all: 24 channels take 576 MiB for 2
// ranks inside a domain and 720 MiB for 4 (issue 964 saw 544 and 688). framework_communicators.h
// says which frameworks stand for such an old NCCL, and which communicators they open besides. A
// group of one rank needs no memory.
#pragma once

#include <vector>

#include "estimator/base/tagged.h"
#include "estimator/communication/fabric.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// One term for each kind of group that the profile's collectives use.
std::vector<MemoryTerm> communicator_memory(const RankProfile& profile,
                                            const ParallelLayout& layout,
                                            const Fabric& fabric);

/// One term for each communicator of a program.
std::vector<MemoryTerm> communicator_memory(const ProgramRecord& program, const Fabric& fabric);

}  // namespace estimator
