// Learns what each block of the device's memory is for.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "estimator/profile/run_observer.h"
#include "sim/tracking/memory_log.h"
#include "sim/tracking/module_peaks.h"

namespace sim {

/// The allocator reports blocks to it, and the run reports their use. Not thread-safe.
class MemoryTracker {
 public:
  explicit MemoryTracker(bool keep_all) : log_(keep_all) {}

  /// The allocator is about to make this block for a request of `bytes`. Not called on the CPU.
  void block_requested(uint64_t address, int64_t bytes, int64_t stream);
  void block_made(uint64_t address,
                  int64_t bytes,
                  int64_t allocated_bytes,
                  const MemoryOrigin& origin);
  void block_freed(uint64_t address, int64_t allocated_bytes);

  /// A tensor lies in a block, which gets its shape and type.
  void saw_tensor(const at::Tensor& tensor);
  void saw_communication(const at::Tensor& tensor);
  /// The block that starts at `address`, if there is one, was communicated.
  void communicated(uint64_t address);
  /// The same, by an all-gather.
  void gathered(uint64_t address);
  /// The same, and it is to hold gradients, because a collective summed it over ranks during
  /// backward.
  void reduced(uint64_t address);
  void saw_lasting(const at::Tensor& tensor,
                   const estimator::LastingMemory& memory,
                   ModuleId owner);
  /// The block that starts at `address`, if there is one, was allocated to last.
  void lasts(uint64_t address, const estimator::LastingMemory& memory, ModuleId owner);

  /// A forward or a recompute that began at event `since` has ended. Returns the bytes of the
  /// activations that it keeps, counted in blocks.
  int64_t forward_ended(int64_t since, estimator::Direction direction);
  void phase_ended();
  /// A step with all its backwards has ended. What was there before it and still is, no backward
  /// needs, although a forward kept it: averages of weights, tables.
  void iteration_ended();
  void restart_peak() { log_.restart_peak(allocated_bytes_); }
  /// An operator that made a block at `address` has ended. If the block is still alive and is no
  /// tensor, a library keeps it: cuBLAS, if the operator is a matrix product.
  void operator_ended(uint64_t address, ModuleId cublas);

  /// The run has entered `place`.
  void place_entered(const Place& place) {
    peaks_.note(place.module, place.direction, allocated_bytes_);
  }

  int64_t allocated_bytes() const { return allocated_bytes_; }
  const MemoryLog& log() const { return log_; }
  const ModulePeaks& module_peaks() const { return peaks_; }

 private:
  struct Request {
    uint64_t address = 0;
    int64_t bytes = 0;
    int64_t stream = 0;
  };

  MemoryLog log_;
  ModulePeaks peaks_;
  Request request_;
  int64_t allocated_bytes_ = 0;
  int64_t iteration_began_ = 0;  ///< memory event
};

}  // namespace sim
