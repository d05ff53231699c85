// The CPU allocator of the device `cpu`. It gives ordinary memory and counts it as the CUDA
// allocator does, so that a rank on `cpu` has peaks too.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <mutex>

namespace sim {

/// The size of a block is a tensor's bytes rounded up to a multiple of this (kMinBlockSize of
/// c10/cuda/CUDACachingAllocator.cpp).
inline constexpr int64_t kBlockBytes = 512;

/// While it lives, allocations of this thread are not counted, and neither are those of work that
/// libtorch passes on to other threads meanwhile (at::ThreadLocalState carries this along). It is
/// used for the buffers of a real network, which do not belong to the shard.
class NotCounted {
 public:
  NotCounted();

 private:
  const c10::DebugInfoGuard carried_by_threads_;
};

/// Counts the live blocks, each rounded up to kBlockBytes; a tensor without elements has no block.
/// Reports every block to PyTorch's memory profiler, as PyTorch's own allocators do. Thread-safe.
class CountingCpuAllocator final : public c10::Allocator {
 public:
  /// Installs a counting allocator as libtorch's CPU allocator for the rest of the process. Call it
  /// before the first tensor is made, since earlier tensors are not counted. Later calls return the
  /// same allocator.
  static CountingCpuAllocator& install();

  int64_t current_bytes() const;
  /// The most bytes that were alive at once since the start or the last reset_peak().
  int64_t peak_bytes() const;
  void reset_peak();

  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* destination, const void* source, size_t bytes) const override;

 private:
  static void free(void* data);
  int64_t count(int64_t block_bytes);

  mutable std::mutex mutex_;
  int64_t current_bytes_ = 0;
  int64_t peak_bytes_ = 0;
};

}  // namespace sim
