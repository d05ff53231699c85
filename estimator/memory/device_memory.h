// What a process holds on its GPU outside PyTorch's allocator: the CUDA context, what CUDA's
// libraries take and NCCL's buffers.
//
// A connection of an NCCL channel (NVIDIA/nccl init.cc, computeBuffSizes) has a receive buffer of
// 512 KiB for LL, 4,800 KiB for LL128 and 4 MiB for Simple, rounded to 10 MiB (issue 1685 saw
// 10,485,760 bytes), and 2 MiB on the sender's side. A communicator has
//
//   ring  one connection for each channel (any collective)
//   tree  two for each channel, parent and child (all-reduce across islands)
//   peer  one and 2 MiB for each channel of each peer that it sends to or receives from (issue
//   1685:
//         7 peers x 32 channels x 14 MiB = 3.3 GB, as measured)
//   NVLS  2 x 16 channels x local ranks x 1 MiB (nvls.cc: 8 steps of 128 KiB)
//
// each with a band: 16 to 32 channels of a ring inside an island and 4 to 32 across (NCCL 2.19 to
// 2.28), 2 to 32 channels to a peer, NVLS from off (as NVIDIA's own launchers set it) to 24
// channels.
//
// of which only what the rank uses is counted: NCCL connects when first used (2.22 and later).
// Before, a communicator connected its ring and a tree for each channel when it was made; over all
// its n ranks a tree has 2 (n - 1) connections: 24 channels make 576 MiB for 2 ranks inside an
// island and 720 MiB for 4 (issue 964 saw 544 and 688). Which dialect means such an NCCL, and what
// else its framework opens: framework_communicators.h. A group of one costs nothing.
#pragma once

#include <vector>

#include "estimator/base/tagged.h"
#include "estimator/communication/fabric.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// Bytes that the context takes once kernels have run. Loaded lazily: the GPU database's, with the
/// band of published figures around it (287 MB for a first tensor; up to 300 MiB more as cuBLASLt,
/// cuDNN and attention load theirs). Loaded eagerly: 1,573 MiB, as nvidia-smi showed for a first
/// tensor on A100 in 2022 (bigscience, tr11-176B-ml/chronicles-prequel.md; its 1,271 MiB are a
/// V100's).
MemoryTerm context_memory(const Gpu& gpu, ModuleLoading loading = ModuleLoading::kLazy);

/// What libraries take at use, beside PyTorch's allocator. A cuBLAS handle makes a workspace of its
/// own, 32 MiB on compute capability 9 and 10, else 4 MiB, though PyTorch then gives it another;
/// forward and autograd's thread have one handle each. At most, besides: 1 KiB of local memory for
/// each thread that can be resident, a printf FIFO of 1 MiB and a heap of 8 MiB (the defaults of
/// cudaLimitPrintfFifoSize and cudaLimitMallocHeapSize). At least nothing: it may be allocated
/// with the context's modules, and then the context's figure has it.
MemoryTerm library_memory(const Gpu& gpu);

/// A term for each group that the profile's collectives use, by kind of group.
std::vector<MemoryTerm> communicator_memory(const RankProfile& profile,
                                            const ParallelLayout& layout,
                                            const Fabric& fabric);

/// A term for each communicator of a program.
std::vector<MemoryTerm> communicator_memory(const ProgramRecord& program, const Fabric& fabric);

}  // namespace estimator
