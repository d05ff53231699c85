// The blocks of the device's memory that a run made: where and by which operator each was made,
// what it is for, and when it was freed.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimator/profile/memory_category.h"
#include "sim/tracking/operator_traits.h"
#include "sim/tracking/thread_places.h"

namespace sim {

inline constexpr int64_t kNeverFreed = std::numeric_limits<int64_t>::max();

/// Stands for the time before the first phase.
inline constexpr int32_t kNoPhase = -1;

/// Where a block was made. `op` is null outside operators.
struct MemoryOrigin {
  Place place;
  int32_t phase = kNoPhase;
  const OperatorTraits* op = nullptr;
  int32_t stack = -1;  ///< of FrameStore, or -1
};

/// One block, from malloc to free. Times are event numbers of the log.
struct Allocation {
  uint64_t address = 0;
  int64_t bytes = 0;            ///< the allocator's block
  int64_t requested_bytes = 0;  ///< asked for
  int64_t stream = 0;
  MemoryOrigin origin;
  int64_t made_at = 0;
  int64_t freed_at = kNeverFreed;

  // Learnt after the block was made. The shape is empty for a scalar, and if no tensor was seen.
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  std::vector<int64_t> shape;
  std::string name;                                ///< parameter to which it belongs
  std::optional<ModuleId> owner;                   ///< as the shard said
  std::optional<estimator::MemoryCategory> state;  ///< as the shard said
  bool outlived_operator = false;                  ///< and is no operator's result
  bool outlived_forward = false;
  bool outlived_phase = false;
  bool communicated = false;
  bool gathered = false;  ///< result of an all-gather
  bool reduced = false;   ///< summed by a collective during backward

  bool is_tensor() const { return dtype != c10::ScalarType::Undefined; }
};

/// See estimator/profile/memory_category.h.
estimator::MemoryCategory category_of(const Allocation& allocation);

/// Keeps all blocks that are alive or were alive at the peak; with `keep_all` all blocks ever made.
/// Not thread-safe.
class MemoryLog {
 public:
  explicit MemoryLog(bool keep_all) : keep_all_(keep_all) {}

  /// A block was made; now `allocated_bytes` are allocated on the device. Only the fields of
  /// `block` above the comment "Learnt" are used, except the times.
  Allocation& made(const Allocation& block, int64_t allocated_bytes);
  void freed(uint64_t address);
  /// From now on the peak is that of what follows; `allocated_bytes` are allocated now.
  void restart_peak(int64_t allocated_bytes) {
    peak_bytes_ = allocated_bytes;
    peak_event_ = next_event_ - 1;
  }

  /// The live block that starts at `address`, or null.
  Allocation* find(uint64_t address);
  /// The live block that contains `address`, or null.
  const Allocation* find_around(uint64_t address) const;
  /// The index in all() of the live block at `address`, or -1.
  int64_t index_of(uint64_t address) const;
  /// Calls visit(Allocation&) for each live block made at event `since` or later, in this order.
  template <class Visit>
  void for_each_alive(int64_t since, const Visit& visit) {
    for (auto block = by_event_.lower_bound(since); block != by_event_.end(); ++block) {
      visit(allocations_[block->second]);
    }
  }

  /// The number of the next event.
  int64_t now() const { return next_event_; }
  /// The largest allocated bytes after an allocation. Of equal peaks, the first one of the last
  /// phase counts.
  int64_t peak_bytes() const { return peak_bytes_; }
  /// The blocks that were alive just after the peak was made, in the order in which they were made.
  std::vector<const Allocation*> at_peak() const;
  /// With keep_all: all blocks, in the order in which they were made.
  const std::vector<Allocation>& all() const { return allocations_; }

 private:
  size_t new_slot();
  void forget(uint64_t address);

  bool keep_all_;
  int64_t next_event_ = 0;
  std::vector<Allocation> allocations_;
  std::vector<size_t> free_slots_;      // of blocks that are not needed any more
  std::map<uint64_t, size_t> alive_;    // by address
  std::map<int64_t, size_t> by_event_;  // the same, by when they were made
  int64_t peak_bytes_ = 0;
  int64_t peak_event_ = -1;
  int32_t peak_phase_ = -1;
};

}  // namespace sim
