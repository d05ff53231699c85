#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/virtual_gpu/capability.h"
#include "sim/virtual_gpu/kernels/cubin.h"

namespace virtual_gpu {

/// The needs that are assumed for a kernel whose code cannot be read. With them, enough threads fit
/// on every capability.
inline constexpr KernelNeeds kAssumedNeeds{.registers_per_thread = 32};

struct LaunchShape {
  uint64_t grid[3];
  uint64_t block[3];
  size_t dynamic_shared_bytes;
};

/// Whether the device would accept the launch. It refuses an empty or too large grid or block, and
/// more shared memory than a block can have.
bool can_launch(const CapabilityFacts& facts, const LaunchShape& shape);

/// How many blocks of `threads` threads fit on a multiprocessor at the same time, computed as in
/// NVIDIA's cuda_occupancy.h.
int resident_blocks(const CapabilityFacts& facts,
                    const KernelNeeds& needs,
                    int threads,
                    size_t dynamic_shared_bytes);

}  // namespace virtual_gpu
