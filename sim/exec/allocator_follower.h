// Watches PyTorch's CUDA allocator while a program uses it, without changing what the program sees:
// the allocator's own peak statistics are neither read nor reset.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
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

/// Follows the device that the program uses first. It reads the allocator at each of its changes,
/// so that it misses no state, and reports every block to a tracker. For other devices it keeps
/// only the largest reserved bytes. Thread-safe. It lives as long as the process, because the
/// allocator keeps a reference to it.
class AllocatorFollower {
 public:
  using Entry = AllocatorEvent;

  /// `on_change` is called for each change on any device while the allocator's lock is held, so it
  /// must not call torch.
  AllocatorFollower(RunTracker& tracker, std::function<void(const Entry&)> on_change);

  /// Begins to follow if the allocator exists already. Call it until it returns true.
  bool attach();

  /// Makes sure that the tracker knows every block that was made until now.
  void settle();

  estimator::MemoryReading current();
  /// Largest allocated and largest reserved bytes since the last call.
  estimator::MemoryReading take_peak();

  std::optional<FailedRequest> first_failure() const;
  /// The program goes on without what it was refused: the next failure is the first one.
  void forget_failure();
  int64_t count_failures() const { return failures_; }

  /// A node of autograd begins, and ends, on this thread. A device that gives it memory computes
  /// gradients: those cannot be made without.
  static void node_started();
  static void node_finished();
  /// The devices that did so.
  std::vector<int64_t> backward_devices() const;

  /// The device that is followed; the first one before any was used.
  int device() const { return device_ == kNoDevice ? 0 : device_.load(); }
  /// All other devices that were used.
  std::vector<estimator::OtherDevice> other_devices() const;
  /// The peaks of the whole run, even if the program resets the allocator's own peaks.
  estimator::AllocatorRecord allocator_record() const;

 private:
  /// The allocator reports a block before it is made, without its size. The size follows from the
  /// sum of all blocks ever made, when this is read next.
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
  std::set<int64_t> backward_devices_;
};

}  // namespace sim
