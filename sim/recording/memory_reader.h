// Reads the memory of each of the three kinds of devices in the same way.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "estimator/profile/rank_profile.h"

namespace sim {

/// Reads the memory of one device, as its allocator counts it.
class MemoryReader {
 public:
  virtual ~MemoryReader() = default;

  virtual c10::DeviceType device_type() const = 0;
  virtual estimator::MemoryReading current() const = 0;
  /// The largest allocated and the largest reserved bytes since the last reset_peak(). The two may
  /// be from different moments.
  virtual estimator::MemoryReading peak() const = 0;
  virtual void reset_peak() = 0;
  /// The allocator's statistics: peaks since the last reset_peak(), counts since the start of the
  /// process.
  virtual estimator::AllocatorRecord allocator() const = 0;
  /// Waits until the device has finished all its work.
  virtual void finish_work() const = 0;
};

/// For kCuda and kVirtual it reads PyTorch's caching allocator on the current CUDA device; CUDA
/// must have been initialised (at::globalContext().lazyInitDevice). For kCpu it installs the
/// counting CPU allocator, whose allocated and reserved bytes are equal.
std::unique_ptr<MemoryReader> make_memory_reader(estimator::DeviceKind kind);

}  // namespace sim
