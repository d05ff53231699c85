// What a process holds on its GPU outside PyTorch's allocator and NCCL: the CUDA context, and what
// CUDA's libraries take.
#pragma once

#include "estimator/base/tagged.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/plan.h"

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

}  // namespace estimator
