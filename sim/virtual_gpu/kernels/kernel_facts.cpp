#include "sim/virtual_gpu/kernels/kernel_facts.h"

#include <algorithm>
#include <limits>

namespace virtual_gpu {
namespace {

constexpr uint64_t kLargestGrid[] = {std::numeric_limits<int>::max(), 65535, 65535};
constexpr uint64_t kLargestBlock[] = {1024, 1024, 64};

/// Each quarter of a multiprocessor gives its warps registers of its own, 256 at a time.
int resident_warps(int registers_per_thread) {
  constexpr int kQuarters = 4, kUnit = 256;
  const int of_warp = (registers_per_thread * kWarpThreads + kUnit - 1) / kUnit * kUnit;
  return kRegistersPerMultiprocessor / kQuarters / of_warp * kQuarters;
}

}  // namespace

bool can_launch(const CapabilityFacts& facts, const LaunchShape& shape) {
  for (int dim = 0; dim < 3; ++dim) {
    if (shape.grid[dim] == 0 || shape.grid[dim] > kLargestGrid[dim]) return false;
    if (shape.block[dim] == 0 || shape.block[dim] > kLargestBlock[dim]) return false;
  }
  const uint64_t threads = shape.block[0] * shape.block[1] * shape.block[2];
  return threads <= kThreadsPerBlock &&
         shape.dynamic_shared_bytes <= static_cast<size_t>(facts.shared_bytes_per_block_optin);
}

int resident_blocks(const CapabilityFacts& facts,
                    const KernelNeeds& needs,
                    int threads,
                    size_t dynamic_shared_bytes) {
  if (threads <= 0 || threads > kThreadsPerBlock ||
      dynamic_shared_bytes > static_cast<size_t>(facts.shared_bytes_per_block_optin)) {
    return 0;
  }
  const int warps = (threads + kWarpThreads - 1) / kWarpThreads;
  int blocks = std::min(facts.blocks_per_multiprocessor,
                        facts.threads_per_multiprocessor / (warps * kWarpThreads));
  if (needs.registers_per_thread > 0) {
    blocks = std::min(blocks, resident_warps(needs.registers_per_thread) / warps);
  }
  const size_t shared_bytes =
      dynamic_shared_bytes + needs.static_shared_bytes + facts.reserved_shared_bytes_per_block;
  if (shared_bytes > 0) {
    blocks =
        std::min(blocks, static_cast<int>(facts.shared_bytes_per_multiprocessor / shared_bytes));
  }
  return blocks;
}

}  // namespace virtual_gpu
