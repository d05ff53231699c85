// The GPU memory of a process outside PyTorch's allocator and NCCL: the CUDA context, and what
// CUDA's libraries allocate.
#pragma once

#include "estimator/base/tagged.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// Bytes that the context takes once kernels have run. With lazy loading it is the number of the
/// GPU database, with the band of published figures around it (287 MB for a first tensor; up to 300
/// MiB more when cuBLASLt, cuDNN and attention load their kernels). With eager loading it is 1,573
/// MiB, as nvidia-smi showed for a first tensor on A100 in 2022 (bigscience,
/// tr11-176B-ml/chronicles-prequel.md; the 1,271 MiB given there are for a V100).
MemoryTerm context_memory(const Gpu& gpu, ModuleLoading loading = ModuleLoading::kLazy);

/// Bytes that CUDA's libraries allocate when they are used, outside PyTorch's allocator. A cuBLAS
/// handle allocates a workspace of its own (32 MiB on compute capability 9 and 10, else 4 MiB),
/// although PyTorch then gives it another one; the thread of the forward and that of autograd have
/// one handle each. The upper end of the band adds 1 KiB of local memory for each thread that can
/// be resident, a printf FIFO of 1 MiB and a heap of 8 MiB (the defaults of cudaLimitPrintfFifoSize
/// and cudaLimitMallocHeapSize). The lower end is 0, because all this may already be in the figure
/// for the context.
MemoryTerm library_memory(const Gpu& gpu);

}  // namespace estimator
