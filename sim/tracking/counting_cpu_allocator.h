// The CPU allocator of the device `cpu`: ordinary memory that is counted as the CUDA allocator
// counts, so that a rank on `cpu` has peaks too.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <mutex>

namespace sim {

/// Bytes that PyTorch's allocators give blocks in: a tensor's bytes rounded up to a multiple of
/// this (kMinBlockSize of c10/cuda/CUDACachingAllocator.cpp).
inline constexpr int64_t kBlockBytes = 512;

/// While it lives, what this thread allocates is not counted, and neither is what is allocated by
/// work that libtorch hands on to other threads meanwhile (at::ThreadLocalState carries it there):
/// a real network's buffers are not the shard's.
class NotCounted {
 public:
  NotCounted();

 private:
  const c10::DebugInfoGuard carried_by_threads_;
};

/// Counts the blocks that are alive, each rounded up to kBlockBytes; a tensor without elements is
/// no block. Reports every block to PyTorch's memory profiler, as its own allocators do.
/// Thread-safe.
class CountingCpuAllocator final : public c10::Allocator {
 public:
  /// Makes a counting allocator libtorch's CPU allocator, for the rest of the process: call it
  /// before the first tensor, since tensors made earlier are not counted. Later calls return the
  /// same one.
  static CountingCpuAllocator& install();

  int64_t current_bytes() const;
  /// Most bytes alive at once since the start or the last reset_peak().
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
