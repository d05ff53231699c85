// PyTorch's CUDA allocator as a program uses it, watched without changing what the program sees:
// its own peak statistics are neither read nor reset.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "sim/tracking/run_tracker.h"

namespace sim {

/// A request that the allocator could not meet.
struct FailedRequest {
  int64_t requested_bytes = 0;
  int64_t free_bytes = 0;
  OutOfMemoryPlace place;
};

/// Reads the allocator of the device that the program uses first at each of its changes, so that no
/// state between two changes is missed, and tells a tracker of every block. Of the other devices it
/// keeps the largest reserved bytes. Thread-safe; lives as long as the process, since the allocator
/// keeps a reference to it.
class AllocatorFollower {
 public:
  using Entry = c10::CachingDeviceAllocator::TraceEntry;

  /// `on_change` sees each change of any device, under the allocator's lock: it must not call
  /// torch.
  AllocatorFollower(RunTracker& tracker, std::function<void(const Entry&)> on_change);

  /// Begins to follow as soon as the allocator is there; to be called until it returns true.
  bool attach();

  /// The tracker knows of every block that was made until now.
  void settle();

  estimator::MemoryReading current();
  /// Largest allocated and largest reserved bytes since the last call.
  estimator::MemoryReading take_peak();

  std::optional<FailedRequest> first_failure() const;
  int64_t count_failures() const { return failures_; }

  /// The device that is followed; -1 before one was used.
  int device() const { return device_; }
  /// Of all other devices that were used.
  std::vector<estimator::OtherDevice> other_devices() const;
  /// Largest of the whole run, however often the program resets the allocator's own peaks.
  estimator::AllocatorRecord allocator_record() const;

 private:
  /// The allocator tells of a block before it is made, and not how large it will be: the sum of all
  /// blocks ever made tells, when it is read next.
  struct NewBlock {
    uint64_t address = 0;
    MemoryOrigin origin;
  };

  void changes(const Entry& entry);
  void failed(const Entry& entry, const estimator::MemoryReading& now);
  bool is_followed(const Entry& entry);

  static constexpr int kNoDevice = -1;

  std::atomic<int> device_ = kNoDevice;
  std::atomic<int64_t> failures_ = 0;
  RunTracker& tracker_;
  const std::function<void(const Entry&)> on_change_;
  bool attached_ = false;
  std::atomic<bool> has_new_block_ = false;
  mutable std::mutex mutex_;  // taken under the allocator's, and the tracker's under it
  estimator::MemoryReading peak_;
  int64_t last_bytes_ = 0;        // allocated at the last reading
  int64_t last_total_bytes_ = 0;  // ever allocated until then
  std::optional<NewBlock> new_block_;
  std::optional<FailedRequest> first_failure_;
  estimator::AllocatorRecord allocator_;
  std::map<int, int64_t> other_reserved_bytes_;  // by device
};

}  // namespace sim
