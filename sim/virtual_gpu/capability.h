#pragma once

#include <cstdint>

namespace virtual_gpu {

/// Facts about a GPU that follow from its compute capability alone.
struct CapabilityFacts {
  int major;
  int minor;
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  int shared_bytes_per_multiprocessor;
  int shared_bytes_per_block_optin;  // with cudaFuncAttributeMaxDynamicSharedMemorySize
  int reserved_shared_bytes_per_block;
};

/// Facts that are the same for every capability of the table.
inline constexpr int kWarpThreads = 32;
inline constexpr int kThreadsPerBlock = 1024;
inline constexpr int kSharedBytesPerBlock = 48 * 1024;
inline constexpr int kRegistersPerMultiprocessor = 64 * 1024;

/// The architecture number of compilers: 90 for capability 9.0.
inline int architecture(const CapabilityFacts& facts) { return 10 * facts.major + facts.minor; }

/// The row of the table, or nullptr for a capability that is not in it.
const CapabilityFacts* find_capability(int major, int minor);

}  // namespace virtual_gpu
