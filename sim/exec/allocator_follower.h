// PyTorch's CUDA allocator as a program uses it, watched without changing what the program sees:
// its own peak statistics are neither read nor reset.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "estimator/rank_profile.h"

namespace sim {

/// A request that the allocator could not meet.
struct FailedRequest {
  int64_t requested_bytes = 0;
  int64_t free_bytes = 0;
};

/// Reads one device's allocator at each of its changes, so that no state between two changes is
/// missed. Thread-safe; lives as long as the process, since the allocator keeps a reference to it.
class AllocatorFollower {
 public:
  using Entry = c10::CachingDeviceAllocator::TraceEntry;

  /// `on_change` sees each change of any device, under the allocator's lock: it must not call
  /// torch.
  AllocatorFollower(c10::DeviceIndex device, std::function<void(const Entry&)> on_change);

  /// Begins to follow as soon as the allocator is there; to be called until it returns true.
  bool attach();

  estimator::MemoryReading current();
  /// Largest allocated and largest reserved bytes since the last call.
  estimator::MemoryReading take_peak();
  std::optional<FailedRequest> first_failure() const;

 private:
  void changes(const Entry& entry);

  const c10::DeviceIndex device_;
  const std::function<void(const Entry&)> on_change_;
  bool attached_ = false;
  mutable std::mutex mutex_;  // taken under the allocator's
  estimator::MemoryReading peak_;
  int64_t last_bytes_ = 0;        // allocated at the last reading
  int64_t last_total_bytes_ = 0;  // ever allocated until then
  std::optional<FailedRequest> first_failure_;
};

}  // namespace sim
