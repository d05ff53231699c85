#include "sim/tracking/memory_log.h"

#include <algorithm>
#include <iterator>

namespace sim {

using estimator::MemoryCategory;

namespace {

/// Parameters or gradients on their way, though a forward made the block and kept it: flat ones
/// that were gathered (FSDP1, DeepSpeed), and what sums gradients and is never given back (the
/// buckets of DistributedDataParallel).
bool carries_state(const Allocation& allocation) {
  if (allocation.gathered && allocation.shape.size() == 1) return true;
  return allocation.reduced && allocation.outlived_phase;
}

}  // namespace

MemoryCategory category_of(const Allocation& allocation) {
  if (allocation.state) return *allocation.state;
  if (carries_state(allocation)) return MemoryCategory::kCommunication;
  if (allocation.outlived_operator) return MemoryCategory::kWorkspace;
  if (allocation.outlived_forward) return MemoryCategory::kActivation;
  if (allocation.communicated) return MemoryCategory::kCommunication;
  if (allocation.outlived_phase) return MemoryCategory::kWorkspace;
  return MemoryCategory::kTemporary;
}

Allocation& MemoryLog::made(const Allocation& block, int64_t allocated_bytes) {
  const size_t slot = new_slot();
  Allocation& allocation = allocations_[slot];
  allocation = block;
  allocation.made_at = next_event_++;
  allocation.freed_at = kNeverFreed;
  forget(block.address);
  alive_.emplace(block.address, slot);
  by_event_.emplace(allocation.made_at, slot);
  const int32_t phase = block.origin.phase;
  if (allocated_bytes > peak_bytes_ || (allocated_bytes == peak_bytes_ && phase != peak_phase_)) {
    peak_bytes_ = allocated_bytes;
    peak_event_ = allocation.made_at;
    peak_phase_ = phase;
  }
  return allocation;
}

void MemoryLog::freed(uint64_t address) {
  const auto found = alive_.find(address);
  if (found == alive_.end()) return;  // made before the log was
  const size_t slot = found->second;
  forget(address);
  allocations_[slot].freed_at = next_event_++;
  const bool was_at_peak = allocations_[slot].made_at <= peak_event_;
  if (!keep_all_ && !was_at_peak) free_slots_.push_back(slot);
}

Allocation* MemoryLog::find(uint64_t address) {
  const auto found = alive_.find(address);
  return found == alive_.end() ? nullptr : &allocations_[found->second];
}

const Allocation* MemoryLog::find_around(uint64_t address) const {
  const auto behind = alive_.upper_bound(address);
  if (behind == alive_.begin()) return nullptr;
  const Allocation& block = allocations_[std::prev(behind)->second];
  return address - block.address < static_cast<uint64_t>(block.bytes) ? &block : nullptr;
}

int64_t MemoryLog::index_of(uint64_t address) const {
  const auto found = alive_.find(address);
  return found == alive_.end() ? -1 : static_cast<int64_t>(found->second);
}

std::vector<const Allocation*> MemoryLog::at_peak() const {
  std::vector<const Allocation*> alive;
  for (const Allocation& allocation : allocations_) {
    if (allocation.made_at <= peak_event_ && allocation.freed_at > peak_event_) {
      alive.push_back(&allocation);
    }
  }
  std::sort(alive.begin(), alive.end(), [](const Allocation* left, const Allocation* right) {
    return left->made_at < right->made_at;
  });
  return alive;
}

void MemoryLog::forget(uint64_t address) {
  const auto found = alive_.find(address);
  if (found == alive_.end()) return;
  by_event_.erase(allocations_[found->second].made_at);
  alive_.erase(found);
}

size_t MemoryLog::new_slot() {
  if (free_slots_.empty()) {
    allocations_.emplace_back();
    return allocations_.size() - 1;
  }
  const size_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

}  // namespace sim
